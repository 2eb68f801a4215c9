#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string_view>

#include "muster/core/ops/non_finite.h"

namespace muster::cpu {

/// The first element whose result is not finite, collected from several threads.
class FirstBad {
 public:
  void note(std::int64_t element) {
    std::int64_t now = at_.load(std::memory_order_relaxed);
    while (element < now && !at_.compare_exchange_weak(now, element, std::memory_order_relaxed)) {
    }
  }
  /// Call after all threads have finished. @throws NonFiniteResult if an element was noted.
  void check(std::string_view op) const {
    const std::int64_t element = at_.load(std::memory_order_relaxed);
    if (element != kNone) throw NonFiniteResult(op, element);
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> at_{kNone};
};

}  // namespace muster::cpu
