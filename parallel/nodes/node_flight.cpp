#include "muster/parallel/nodes/node_flight.h"

#include <optional>
#include <utility>

#include "muster/core/base/start_thread.h"

namespace muster {

Flight::Flight(NodeLink& link) : link_(link), thread_(startThread("means in flight", [this] { run(); })) {}

Flight::~Flight() {
  const Lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

void Flight::launch(Work work) {
  const Lock lock(mutex_);
  if (done_ == count_) first_ = count_;
  const auto slot = static_cast<std::size_t>(count_ - first_);
  if (slot == work_.size()) work_.emplace_back();
  work_[slot] = std::move(work);
  ++count_;
  changed_.notify_all();
}

void Flight::run() {
  std::optional<Context> context;
  Lock lock(mutex_);
  for (;; ++done_, changed_.notify_all()) {
    while (done_ == count_ && !ending_) changed_.wait(lock.native());
    if (done_ == count_) return;
    if (failure_) continue;
    const Work& next = work_[static_cast<std::size_t>(done_ - first_)];  // launch() does not move it
    std::exception_ptr failure;
    lock.unlock();
    try {
      if (!context) context.emplace();
      next(*context);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    if (failure) link_.fail();  // after the failure is known, which is the cause of those that now follow
  }
}

void NodeFlight::launch(const NodeMean& mean, Slice own) {
  Launch& next = launches_.next(flight_);
  next.mean = mean;
  next.weights.assign(mean.weights.begin(), mean.weights.end());
  next.mean.weights = next.weights;
  next.own = own;
  flight_.launch([this, &next](Context& context) { reduction_.run(next.mean, next.own, context); });
}

void EncodedGather::run(std::span<std::byte> all, std::span<const double> weights,
                        std::function<void(Context&)> then, bool later, Context& context) {
  if (!later || !flight_) {
    gather(all, weights, messages_);
    return then(context);
  }
  Launch& next = launches_.next(*flight_);
  next.all = all;
  next.weights.assign(weights.begin(), weights.end());
  next.then = std::move(then);
  flight_->launch([this, &next](Context& flying) {
    gather(next.all, next.weights, messagesInFlight_);
    next.then(flying);
  });
}

void EncodedGather::gather(std::span<std::byte> all, std::span<const double> weights,
                           NodeMessages& messages) const {
  const std::size_t size = all.size() / static_cast<std::size_t>(link_.nodes());
  messages.run(
      all.subspan(static_cast<std::size_t>(link_.node()) * size, size), all,
      [&](int n) { return weights[static_cast<std::size_t>(n)] > 0; }, [](int) { return true; });
}

}  // namespace muster
