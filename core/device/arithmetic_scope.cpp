#include "muster/core/device/arithmetic_scope.h"

#include <omp.h>

#include <algorithm>

#include "muster/core/device/detail/loop_threads.h"

namespace muster {
namespace {

/// Calls `use(thread)` on each thread of the calling thread's OpenMP team.
template <typename Use>
void onTeam(std::size_t threads, const Use& use) {
  if (threads < 2 || !canRunLoops()) return use(std::size_t{0});
  const int team = static_cast<int>(threads);
#pragma omp parallel num_threads(team)
  use(static_cast<std::size_t>(omp_get_thread_num()));
}

}  // namespace

ArithmeticScope::ArithmeticScope(int threads)
    : before_(static_cast<std::size_t>(std::max(1, threads))),
      dynamicBefore_(omp_get_dynamic()),
      levelsBefore_(omp_get_max_active_levels()) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(std::max(1, levelsBefore_));
  onTeam(before_.size(), [this](std::size_t thread) {
    std::fegetenv(&before_[thread]);
    std::fesetenv(FE_DFL_ENV);  // on x86 this also keeps subnormal numbers
  });
}

ArithmeticScope::~ArithmeticScope() {
  onTeam(before_.size(), [this](std::size_t thread) { std::fesetenv(&before_[thread]); });
  omp_set_dynamic(dynamicBefore_);
  omp_set_max_active_levels(levelsBefore_);
}

}  // namespace muster
