#pragma once

#include <cstddef>
#include <string>

#include "muster/core/base/error.h"

namespace muster::detail {

/// What is wrong because of a set of RunFile::parse, and not because of the file.
class SetError final : public InvalidArgument {
 public:
  /// @param set  index of the set to blame.
  SetError(std::size_t set, const std::string& problem) : InvalidArgument(problem), set_(set) {}
  std::size_t set() const { return set_; }

 private:
  std::size_t set_;
};

}  // namespace muster::detail
