#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/inference/parallel_inference.h"

namespace muster {

/// Waits for a change. @return false if the deadline has passed.
bool waitUntil(std::condition_variable& changed, Lock& lock, ParallelInference::Clock::time_point deadline);

/// A call of `output`, on the stack of its caller.
struct InferenceCall {
  const Batch& batch;
  std::int64_t examples;
  ParallelInference::Clock::time_point deadline;
  ParallelInference::Clock::time_point arrived = {};

  // Written by the worker that took the call; read by the caller once its group is answered.
  Tensor output = {};  ///< shares memory with those of other calls until `CallQueue::answer` copies it
  std::int64_t modelVersion = 0;
  std::exception_ptr failure = {};
};

/// Calls that one worker computes together. Their callers sleep on one condition variable, which wakes all of
/// them at once.
class CallGroup {
 public:
  enum class State {
    Waiting,   ///< in the queue: calls enter and leave
    Taken,     ///< a worker reads the features or writes the outputs: no call can leave
    Read,      ///< a worker computes: a call that leaves becomes null
    Answered,  ///< every call that has not left has its output or its failure
  };

  // Guarded by the queue's mutex; a worker that has taken the group needs no lock.
  State state = State::Waiting;
  std::vector<InferenceCall*> calls;  ///< in order of arrival
  std::int64_t examples = 0;          ///< of all calls

  /// @return false if the deadline passed first.
  bool waitUntilAnswered(ParallelInference::Clock::time_point deadline = ParallelInference::kNoDeadline);
  /// Wakes the callers. Do not use the calls afterwards.
  void answer();

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  bool answered_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster
