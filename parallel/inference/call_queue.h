#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <utility>
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

/// Whether two batches may be joined: features and masks have the same names, types and shapes per example.
bool joinable(const Batch& a, const Batch& b);

/// The waiting calls, in groups that are computed together. A call enters the first group that has room and
/// whose batches are joinable with its own batch, or a new group at the end. Thread-safe.
class CallQueue {
 public:
  explicit CallQueue(InferenceOptions options) : options_(std::move(options)) {}

  /// For callers: waits until the call is answered. @throws the call's failure, DeadlineExceeded, QueueFull,
  /// InferenceShutDown.
  void answer(InferenceCall& call);

  /// For workers: takes the first group; with a batch time, the first that is full or whose time is up, and
  /// if the queue is full, the first in any case. Waits until there is one.
  /// @return null once the queue is closed and empty.
  std::shared_ptr<CallGroup> take();
  /// For workers: Read once the features of all calls are copied, Taken before the outputs are written.
  void setState(CallGroup& group, CallGroup::State state);
  /// For workers, then, once all calls that have not left are answered: wakes the callers.
  void release(CallGroup& group);
  /// Calls that wait for a worker, or for room.
  std::int64_t waiting() const;

  /// Refuses calls from now on. Workers can still take the calls in the queue.
  void close();

 private:
  using Groups = std::deque<std::shared_ptr<CallGroup>>;

  bool hasRoom() const MUSTER_REQUIRES(mutex_) { return closed_ || waitingCalls_ < options_.queueLimit; }
  /// @return false if the deadline passed first.
  bool waitForRoom(Lock& lock, ParallelInference::Clock::time_point deadline) MUSTER_REQUIRES(mutex_);
  std::shared_ptr<CallGroup> enter(InferenceCall& call);
  /// The group for the call: a waiting group, or a new one.
  std::shared_ptr<CallGroup> groupFor(const InferenceCall& call) const MUSTER_REQUIRES(mutex_);
  /// Removes the call of a caller that gives up. @return false if a worker has answered it.
  bool leave(CallGroup& group, InferenceCall& call);
  void removeWaiting(CallGroup& group, InferenceCall& call) MUSTER_REQUIRES(mutex_);
  /// The first group that is full or whose time is up; if the queue is full or closed or no batch time is
  /// set, the first of all. `end()` if there is none.
  Groups::iterator dueGroup() MUSTER_REQUIRES(mutex_);
  /// When the group is computed although it is not full.
  ParallelInference::Clock::time_point timeOf(const CallGroup& group) const {
    return group.calls.front()->arrived + options_.batchTime;
  }
  std::shared_ptr<CallGroup> take(Groups::iterator chosen) MUSTER_REQUIRES(mutex_);

  const InferenceOptions options_;

  mutable Mutex mutex_;
  std::condition_variable work_, room_;
  std::condition_variable read_;              // for callers that give up while a worker reads their features
  Groups waiting_ MUSTER_GUARDED_BY(mutex_);  ///< no group is empty
  std::int64_t waitingCalls_ MUSTER_GUARDED_BY(mutex_) = 0;
  int forRoom_ MUSTER_GUARDED_BY(mutex_) = 0;  ///< callers that wait for room
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster
