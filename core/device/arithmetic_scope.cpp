#include "muster/core/device/arithmetic_scope.h"

#include <omp.h>

#include <algorithm>

#include "muster/core/device/detail/loop_threads.h"

namespace muster {
namespace {

/// Calls `use(index)` on each other thread of the calling thread's OpenMP team.
template <typename Use>
void onOthers(std::size_t others, const Use& use) {
  if (others == 0 || !canRunLoops()) return;
  const int team = static_cast<int>(others + 1);
#pragma omp parallel num_threads(team)
  if (const int thread = omp_get_thread_num(); thread > 0) use(static_cast<std::size_t>(thread - 1));
}

}  // namespace

ArithmeticScope::ArithmeticScope(int threads)
    : others_(static_cast<std::size_t>(std::max(1, threads) - 1)),
      dynamicBefore_(omp_get_dynamic()),
      levelsBefore_(omp_get_max_active_levels()) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(std::max(1, levelsBefore_));
  // Outside of the team's region: at its end LLVM's OpenMP undoes what the calling thread has set in it.
  std::fegetenv(&own_);
  std::fesetenv(FE_DFL_ENV);  // on x86 this also keeps subnormal numbers
  onOthers(others_.size(), [this](std::size_t index) {
    std::fegetenv(&others_[index]);
    std::fesetenv(FE_DFL_ENV);
  });
}

ArithmeticScope::~ArithmeticScope() {
  onOthers(others_.size(), [this](std::size_t index) { std::fesetenv(&others_[index]); });
  std::fesetenv(&own_);
  omp_set_dynamic(dynamicBefore_);
  omp_set_max_active_levels(levelsBefore_);
}

}  // namespace muster
