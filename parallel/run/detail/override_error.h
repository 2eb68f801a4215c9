#pragma once

#include <cstddef>
#include <string>

#include "muster/core/base/error.h"

namespace muster::detail {

/// What is wrong because of an override of RunFile::parse, and not because of the file.
class OverrideError final : public InvalidArgument {
 public:
  /// @param index  of the override to blame.
  OverrideError(std::size_t index, const std::string& problem) : InvalidArgument(problem), index_(index) {}
  std::size_t index() const { return index_; }

 private:
  std::size_t index_;
};

}  // namespace muster::detail
