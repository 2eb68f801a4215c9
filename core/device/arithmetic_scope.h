#pragma once

#include <cfenv>
#include <cstddef>
#include <vector>

namespace muster {

/// While it lives, operations on the calling thread compute as they do everywhere: they round to nearest,
/// keep subnormal numbers, and use as many threads as their context says, whatever the program has set for
/// itself (rounding mode, flush-to-zero, `omp_set_dynamic`, OMP_DYNAMIC, OMP_MAX_ACTIVE_LEVELS). Otherwise
/// the bits of a training would depend on these. The destructor restores them. Threads that are started
/// meanwhile inherit the arithmetic.
class ArithmeticScope {
 public:
  /// @param threads  of the operations. With one nothing is allocated.
  explicit ArithmeticScope(int threads = 1);
  ~ArithmeticScope();
  ArithmeticScope(const ArithmeticScope&) = delete;
  ArithmeticScope& operator=(const ArithmeticScope&) = delete;

 private:
  std::fenv_t own_;                  // the calling thread's before
  std::vector<std::fenv_t> others_;  // [thread - 1] of its OpenMP team
  int dynamicBefore_, levelsBefore_;
};

}  // namespace muster
