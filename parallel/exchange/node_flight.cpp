#include "muster/parallel/exchange/node_flight.h"

#include <utility>

#include "muster/core/base/start_thread.h"

namespace muster {

NodeFlight::NodeFlight(NodeLink& link, int local, int channel)
    : reduction_(link, local, channel), thread_(startThread("means in flight", [this] { run(); })) {}

NodeFlight::~NodeFlight() {
  const Lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

void NodeFlight::launch(const NodeMean& mean, Slice own) {
  launched_ = true;
  const Lock lock(mutex_);
  if (count_ == launches_.size()) launches_.emplace_back();
  Launch& next = launches_[count_];
  next.mean = mean;
  next.weights.assign(mean.weights.begin(), mean.weights.end());
  next.mean.weights = next.weights;
  next.own = own;
  ++count_;
  changed_.notify_all();
}

void NodeFlight::land() {
  launched_ = false;
  Lock lock(mutex_);
  while (done_ < count_) changed_.wait(lock.native());
  done_ = count_ = 0;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void NodeFlight::wait() noexcept {
  Lock lock(mutex_);
  while (done_ < count_) changed_.wait(lock.native());
}

void NodeFlight::run() {
  Context context;
  Lock lock(mutex_);
  for (;;) {
    while (done_ == count_ && !ending_) changed_.wait(lock.native());
    if (done_ == count_) return;
    const Launch& next = launches_[done_];  // stays where it is when more are launched
    const bool failed = failure_ != nullptr;
    lock.unlock();
    std::exception_ptr failure;
    if (!failed) try {
        reduction_.run(next.mean, next.own, context);
      } catch (...) {
        failure = std::current_exception();
      }
    lock.lock();
    if (failure) failure_ = failure;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace muster
