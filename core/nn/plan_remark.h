#pragma once

#include <string>

namespace muster {

/// For models that add a remark on how they train to `ParallelWrapper::plan()`. A model of your own may
/// derive from it, too.
class PlanRemark {
 public:
  virtual ~PlanRemark() = default;
  /// What `plan()` adds; empty: nothing.
  virtual std::string planRemark() const = 0;
};

}  // namespace muster
