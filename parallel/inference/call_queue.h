#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/inference/answer_signal.h"
#include "muster/parallel/inference/parallel_inference.h"

namespace muster {

/// A call that waits for a worker, on the stack of its caller.
struct InferenceCall {
  const Batch& batch;
  std::int64_t examples;
  ParallelInference::Clock::time_point deadline;
  ParallelInference::Clock::time_point arrived = {};

  // Written by the worker that has taken the call, read by the caller once it is answered.
  Tensor output = {};
  std::int64_t modelVersion = 0;
  std::exception_ptr failure = {};

  // Guarded by the queue's mutex.
  enum class State { Waiting, Taken, Read, Answered };
  State state = State::Waiting;
  InferenceCall** place = nullptr;  ///< in the list of the worker that has taken it

  AnswerSignal answered = {};
};

/// Whether two batches may be joined: features and masks have the same names, types, and shapes of an
/// example.
bool joinable(const Batch& a, const Batch& b);

/// The calls that wait, in the order in which they came. Thread-safe.
class CallQueue {
 public:
  explicit CallQueue(const InferenceOptions& options);

  /// For callers: waits until the call is answered. @throws what it was answered with, DeadlineExceeded,
  /// QueueFull, InferenceShutDown.
  void answer(InferenceCall& call);

  /// For workers: waits for calls and takes the first, and those after it that are joined with it.
  /// @param calls  overwritten; memory for `batchLimit` was reserved. A call whose caller leaves becomes
  /// null.
  /// @return false once the queue is closed and empty.
  bool take(std::vector<InferenceCall*>& calls);
  /// For workers: the features of all calls have been copied. From now on callers whose deadline passes
  /// leave.
  void haveRead(std::vector<InferenceCall*>& calls);
  /// For workers, after `haveRead`: no caller leaves from now on; calls that are null have left.
  void hold(std::vector<InferenceCall*>& calls);
  /// For workers, after `hold` and once all calls are answered: lets the callers go.
  void release(std::vector<InferenceCall*>& calls);

  /// Calls that wait for a worker, or for room.
  std::int64_t waiting() const;

  /// Refuses calls from now on. Those in the queue can still be taken.
  void close();

 private:
  bool hasRoom() const MUSTER_REQUIRES(mutex_) { return closed_ || waiting_.size() < queueLimit_; }
  /// @return false if the deadline passed first.
  bool waitForRoom(Lock& lock, ParallelInference::Clock::time_point deadline) MUSTER_REQUIRES(mutex_);
  void enter(InferenceCall& call);
  /// The caller gives up. @return whether the call will not be answered.
  bool leave(InferenceCall& call);
  void setState(std::vector<InferenceCall*>& calls, InferenceCall::State state);
  /// Examples of the calls that would be joined with the first, up to `batchLimit`.
  std::int64_t examplesAtFront() const MUSTER_REQUIRES(mutex_);
  void waitForOthers(Lock& lock) MUSTER_REQUIRES(mutex_);
  void removeFirst(std::vector<InferenceCall*>& into) MUSTER_REQUIRES(mutex_);

  const InferenceMode mode_;
  const std::int64_t batchLimit_;
  const std::chrono::microseconds batchTime_;
  const std::size_t queueLimit_;
  const WhenFull whenFull_;

  mutable Mutex mutex_;
  std::condition_variable work_, room_, read_;
  std::deque<InferenceCall*> waiting_ MUSTER_GUARDED_BY(mutex_);
  int forRoom_ MUSTER_GUARDED_BY(mutex_) = 0;  ///< callers that wait for room
  /// Callers that wait until their features have been read, or their call is answered.
  int late_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster
