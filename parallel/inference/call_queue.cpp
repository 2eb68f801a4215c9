#include "muster/parallel/inference/call_queue.h"

#include <algorithm>

namespace muster {
namespace {

using State = InferenceCall::State;
using TimePoint = ParallelInference::Clock::time_point;

bool sameForm(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  const auto alike = [](const NamedTensor& x, const NamedTensor& y) {
    const auto xs = x.value.shape().sizes(), ys = y.value.shape().sizes();
    return x.name == y.name && x.value.dtype() == y.value.dtype() &&
           std::ranges::equal(xs.subspan(1), ys.subspan(1));
  };
  return std::ranges::equal(a, b, alike);
}

/// @return false if the deadline has passed.
bool waitUntil(std::condition_variable& changed, Lock& lock, TimePoint deadline) {
  if (deadline != ParallelInference::kNoDeadline)
    return changed.wait_until(lock.native(), deadline) == std::cv_status::no_timeout;
  changed.wait(lock.native());
  return true;
}

}  // namespace

bool joinable(const Batch& a, const Batch& b) {
  return sameForm(a.features, b.features) && sameForm(a.masks, b.masks);
}

CallQueue::CallQueue(const InferenceOptions& options)
    : mode_(options.mode),
      batchLimit_(options.batchLimit),
      batchTime_(options.batchTime),
      queueLimit_(static_cast<std::size_t>(options.queueLimit)),
      whenFull_(options.whenFull) {}

void CallQueue::answer(InferenceCall& call) {
  enter(call);
  bool inTime = false;
  try {
    inTime = call.answered.waitUntil(call.deadline);
  } catch (...) {  // this thread is cancelled: from here on no worker may write to its stack
    if (!leave(call)) call.answered.wait();
    throw;
  }
  if (!inTime) {
    if (leave(call)) throw DeadlineExceeded("output: the deadline passed before it was computed");
    call.answered.wait();  // it is about to be signalled
  }
  if (call.failure) std::rethrow_exception(call.failure);
}

bool CallQueue::waitForRoom(Lock& lock, TimePoint deadline) {
  struct Waiting {  // also where the thread is cancelled
    int& count;
    ~Waiting() { --count; }
  } const waiting{++forRoom_};
  while (!hasRoom() && waitUntil(room_, lock, deadline)) {
  }
  return hasRoom();
}

void CallQueue::enter(InferenceCall& call) {
  Lock lock(mutex_);
  if (!hasRoom()) {
    if (whenFull_ == WhenFull::Refuse)
      throw QueueFull(fmt::format("output: {} calls wait, which is the queue limit", waiting_.size()));
    if (!waitForRoom(lock, call.deadline))
      throw DeadlineExceeded(fmt::format(
          "output: the deadline passed while {} other calls waited, which is the queue limit", queueLimit_));
  }
  if (closed_) throw InferenceShutDown("output: this ParallelInference was shut down");
  call.arrived = ParallelInference::Clock::now();
  waiting_.push_back(&call);
  lock.unlock();
  work_.notify_one();
}

bool CallQueue::leave(InferenceCall& call) {
  Lock lock(mutex_);
  ++late_;
  while (call.state == State::Taken) read_.wait(lock.native());
  --late_;
  if (call.state == State::Answered) return false;
  if (call.state == State::Read) {
    *call.place = nullptr;
  } else {
    waiting_.erase(std::ranges::find(waiting_, &call));
    if (forRoom_ > 0) room_.notify_one();
  }
  return true;
}

std::int64_t CallQueue::examplesAtFront() const {
  std::int64_t examples = 0;
  for (const auto* call : waiting_)
    if (joinable(call->batch, waiting_.front()->batch)) examples += call->examples;
  return examples;
}

void CallQueue::waitForOthers(Lock& lock) {
  while (!closed_ && !waiting_.empty() && examplesAtFront() < batchLimit_)
    if (work_.wait_until(lock.native(), waiting_.front()->arrived + batchTime_) == std::cv_status::timeout)
      return;
}

void CallQueue::removeFirst(std::vector<InferenceCall*>& into) {
  into.push_back(waiting_.front());
  waiting_.pop_front();
  if (mode_ != InferenceMode::Batched) return;
  std::int64_t examples = into.front()->examples;
  for (auto next = waiting_.begin(); next != waiting_.end() && examples < batchLimit_;) {
    if (examples + (*next)->examples > batchLimit_ || !joinable((*next)->batch, into.front()->batch)) {
      ++next;
      continue;
    }
    examples += (*next)->examples;
    into.push_back(*next);
    next = waiting_.erase(next);
  }
}

bool CallQueue::take(std::vector<InferenceCall*>& calls) {
  calls.clear();
  Lock lock(mutex_);
  for (;;) {
    if (!waiting_.empty() && batchTime_ > batchTime_.zero()) waitForOthers(lock);
    if (!waiting_.empty()) break;  // another worker may have taken them meanwhile
    if (closed_) return false;
    work_.wait(lock.native());
  }
  removeFirst(calls);
  for (auto*& call : calls) {
    call->state = State::Taken;
    call->place = &call;
  }
  if (forRoom_ > 0) room_.notify_all();
  if (!waiting_.empty()) work_.notify_one();  // a worker that waited for others has heard of these
  return true;
}

void CallQueue::setState(std::vector<InferenceCall*>& calls, InferenceCall::State state) {
  const Lock lock(mutex_);
  for (auto* call : calls)
    if (call) call->state = state;
  if (late_ > 0) read_.notify_all();
}

void CallQueue::haveRead(std::vector<InferenceCall*>& calls) {
  setState(calls, State::Read);
}

void CallQueue::hold(std::vector<InferenceCall*>& calls) {
  setState(calls, State::Taken);
}

void CallQueue::release(std::vector<InferenceCall*>& calls) {
  setState(calls, State::Answered);
  // Without the mutex, which they would all wait for. Each caller stays until its own is signalled.
  for (auto* call : calls)
    if (call) call->answered.signal();
}

std::int64_t CallQueue::waiting() const {
  const Lock lock(mutex_);
  return static_cast<std::int64_t>(waiting_.size()) + forRoom_;
}

void CallQueue::close() {
  const Lock lock(mutex_);
  closed_ = true;
  work_.notify_all();
  room_.notify_all();
}

}  // namespace muster
