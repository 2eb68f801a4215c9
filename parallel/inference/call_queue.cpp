#include "muster/parallel/inference/call_queue.h"

#include <algorithm>

#include "muster/core/base/plural.h"

namespace muster {
namespace {

using State = CallGroup::State;
using TimePoint = ParallelInference::Clock::time_point;

bool sameForm(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  const auto alike = [](const NamedTensor& x, const NamedTensor& y) {
    return x.name == y.name && x.value.dtype() == y.value.dtype() &&
           x.value.shape().dropFirst() == y.value.shape().dropFirst();
  };
  return std::ranges::equal(a, b, alike);
}

}  // namespace

bool joinable(const Batch& a, const Batch& b) {
  return sameForm(a.features, b.features) && sameForm(a.masks, b.masks);
}

bool waitUntil(std::condition_variable& changed, Lock& lock, ParallelInference::Clock::time_point deadline) {
  if (deadline != ParallelInference::kNoDeadline)
    return changed.wait_until(lock.native(), deadline) == std::cv_status::no_timeout;
  changed.wait(lock.native());
  return true;
}

bool CallGroup::waitUntilAnswered(ParallelInference::Clock::time_point deadline) {
  Lock lock(mutex_);
  while (!answered_ && waitUntil(changed_, lock, deadline)) {
  }
  return answered_;
}

void CallGroup::answer() {
  {
    const Lock lock(mutex_);
    answered_ = true;
  }
  changed_.notify_all();  // without the mutex, for which all callers would wait
}

void CallQueue::answer(InferenceCall& call) {
  const auto group = enter(call);
  bool inTime = false;
  try {
    inTime = group->waitUntilAnswered(call.deadline);
  } catch (...) {  // this thread is cancelled: no worker may write to its stack any more
    leave(*group, call);
    throw;
  }
  if (!inTime && leave(*group, call))
    throw DeadlineExceeded("output: the deadline passed before it was computed");
  if (call.failure) std::rethrow_exception(call.failure);
  // The outputs of a group are rows of one tensor. Each caller copies its own rows, so the worker does not.
  if (group->calls.size() > 1) call.output = cloneTensor(call.output);
}

bool CallQueue::waitForRoom(Lock& lock, TimePoint deadline) {
  struct Waiting {  // also if the thread is cancelled
    int& count;
    ~Waiting() { --count; }
  } const waiting{++forRoom_};
  while (!hasRoom() && waitUntil(room_, lock, deadline)) {
  }
  return hasRoom();
}

std::shared_ptr<CallGroup> CallQueue::enter(InferenceCall& call) {
  Lock lock(mutex_);
  if (!hasRoom()) {
    if (options_.whenFull == WhenFull::Refuse)
      throw QueueFull(fmt::format("output: {}, which is the queue limit",
                                  plural(waitingCalls_, "call waits", "calls wait")));
    if (!waitForRoom(lock, call.deadline))
      throw DeadlineExceeded(
          fmt::format("output: the deadline passed while {} waited, which is the queue limit",
                      plural(options_.queueLimit, "other call")));
  }
  if (closed_) throw InferenceShutDown("output: this ParallelInference was shut down");
  if (options_.batchTime.count() > 0) call.arrived = ParallelInference::Clock::now();
  auto group = groupFor(call);
  group->calls.push_back(&call);
  if (group->calls.size() == 1) waiting_.push_back(group);
  group->examples += call.examples;
  ++waitingCalls_;
  lock.unlock();
  work_.notify_one();
  return group;
}

std::shared_ptr<CallGroup> CallQueue::groupFor(const InferenceCall& call) const {
  if (options_.mode == InferenceMode::Batched)
    for (const auto& group : waiting_)
      if (group->examples + call.examples <= options_.batchLimit &&
          joinable(group->calls.front()->batch, call.batch))
        return group;
  return std::make_shared<CallGroup>();
}

bool CallQueue::leave(CallGroup& group, InferenceCall& call) {
  Lock lock(mutex_);
  while (group.state == State::Taken) read_.wait(lock.native());
  if (group.state == State::Answered) {
    lock.unlock();
    return !group.waitUntilAnswered();
  }
  if (group.state == State::Read)
    *std::ranges::find(group.calls, &call) = nullptr;
  else
    removeWaiting(group, call);
  return true;
}

void CallQueue::removeWaiting(CallGroup& group, InferenceCall& call) {
  std::erase(group.calls, &call);
  group.examples -= call.examples;
  --waitingCalls_;
  if (group.calls.empty())
    std::erase_if(waiting_, [&](const auto& waiting) { return waiting.get() == &group; });
  if (forRoom_ > 0) room_.notify_one();
}

CallQueue::Groups::iterator CallQueue::dueGroup() {
  if (options_.batchTime.count() == 0 || closed_) return waiting_.begin();
  const auto now = ParallelInference::Clock::now();
  const auto due = std::ranges::find_if(waiting_, [&](const auto& group) {
    return group->examples >= options_.batchLimit || timeOf(*group) <= now;
  });
  // While the queue is full no call can enter, so no group would grow.
  return due == waiting_.end() && waitingCalls_ >= options_.queueLimit ? waiting_.begin() : due;
}

std::shared_ptr<CallGroup> CallQueue::take() {
  Lock lock(mutex_);
  for (;;) {
    if (const auto due = dueGroup(); due != waiting_.end()) return take(due);
    if (closed_) return nullptr;
    if (waiting_.empty()) {
      work_.wait(lock.native());
    } else {  // times are not in order: a call may have left the front of its group
      const auto next =
          std::ranges::min_element(waiting_, {}, [&](const auto& group) { return timeOf(*group); });
      work_.wait_until(lock.native(), timeOf(**next));
    }
  }
}

std::shared_ptr<CallGroup> CallQueue::take(Groups::iterator chosen) {
  auto group = std::move(*chosen);
  waiting_.erase(chosen);
  waitingCalls_ -= static_cast<std::int64_t>(group->calls.size());
  group->state = State::Taken;
  if (forRoom_ > 0) room_.notify_all();
  if (!waiting_.empty()) work_.notify_one();  // for a group that is due now, or whose time is the next
  return group;
}

void CallQueue::setState(CallGroup& group, State state) {
  const Lock lock(mutex_);
  group.state = state;
  read_.notify_all();
}

void CallQueue::release(CallGroup& group) {
  setState(group, State::Answered);
  group.answer();
}

std::int64_t CallQueue::waiting() const {
  const Lock lock(mutex_);
  return waitingCalls_ + forRoom_;
}

void CallQueue::close() {
  const Lock lock(mutex_);
  closed_ = true;
  work_.notify_all();
  room_.notify_all();
}

}  // namespace muster
