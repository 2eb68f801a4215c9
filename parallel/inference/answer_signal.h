#pragma once

#include <concurrentqueue.h>  // which the semaphore's header needs before it
#include <lightweightsemaphore.h>

#include <chrono>

#include "muster/parallel/inference/parallel_inference.h"

namespace muster {

/// What one thread waits for and another signals once. It may end as soon as the wait has.
class AnswerSignal {
 public:
  void signal() { semaphore_.signal(); }
  void wait() {
    while (!semaphore_.wait()) {
    }
  }
  /// @return false if the deadline passed first.
  bool waitUntil(ParallelInference::Clock::time_point deadline) {
    if (deadline == ParallelInference::kNoDeadline) {
      wait();
      return true;
    }
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::microseconds>(deadline - ParallelInference::Clock::now());
      if (left <= left.zero()) return semaphore_.tryWait();
      if (semaphore_.wait(left.count())) return true;
    }
  }

 private:
  moodycamel::LightweightSemaphore semaphore_{0, /*maxSpins=*/0};
};

}  // namespace muster
