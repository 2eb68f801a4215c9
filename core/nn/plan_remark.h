#pragma once

#include <string>

namespace muster {

/// A model that has something to say about how it trains, for those who read `ParallelWrapper::plan()`. A
/// model of one's own derives from it, too.
class PlanRemark {
 public:
  virtual ~PlanRemark() = default;
  /// What `plan()` adds; empty: nothing.
  virtual std::string planRemark() const = 0;
};

}  // namespace muster
