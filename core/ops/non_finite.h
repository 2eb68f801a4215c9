#pragma once

#include <cstdint>

#include "muster/core/base/error.h"

namespace muster {

/// Thrown by an op on the CPU whose result would not be finite, although its inputs may be. Other parts of
/// the block may have been written, but nothing close to that element.
class NonFiniteResult : public NonFiniteScore {
 public:
  NonFiniteResult(std::string_view op, std::int64_t element)
      : NonFiniteScore(fmt::format("{}: the result is not finite, at element {}", op, element)),
        element_(element) {}
  /// The element's index in the whole block.
  std::int64_t element() const { return element_; }

 private:
  std::int64_t element_;
};

}  // namespace muster
