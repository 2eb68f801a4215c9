#pragma once

#include <cstdint>

#include "muster/core/base/error.h"

namespace muster {

/// What an op would have written is not finite, though its inputs may be. On the CPU; nothing was written
/// around that element, but elsewhere it was.
class NonFiniteResult : public NonFiniteScore {
 public:
  NonFiniteResult(std::string_view op, std::int64_t element)
      : NonFiniteScore(fmt::format("{}: the result is not finite, at element {}", op, element)),
        element_(element) {}
  /// Of the whole block.
  std::int64_t element() const { return element_; }

 private:
  std::int64_t element_;
};

}  // namespace muster
