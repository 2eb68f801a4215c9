#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/nodes/node_messages.h"
#include "muster/parallel/nodes/node_reduction.h"

namespace muster {

/// Runs work over nodes on a thread of its own while the workers train, in the order of the launches.
class Flight {
 public:
  using Work = std::function<void(Context&)>;

  /// @param link  fails at once if work throws, because other nodes wait for this one's part.
  explicit Flight(NodeLink& link);
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  /// Allocates only for more work at a time than before. Used by one thread at a time.
  void launch(Work work);
  std::int64_t launches() const {
    const Lock lock(mutex_);
    return count_;
  }
  /// Whether all launched work is done.
  bool idle() const {
    const Lock lock(mutex_);
    return done_ == count_;
  }
  /// Waits for the first `launches` launches. @throws the first failure, at every call.
  void land(std::int64_t launches) {
    Lock lock(mutex_);
    while (done_ < launches) changed_.wait(lock.native());
    if (failure_) std::rethrow_exception(failure_);
  }
  /// Waits for all launches, even after a failure. @return whether none has failed.
  bool wait() noexcept {
    Lock lock(mutex_);
    while (done_ < count_) changed_.wait(lock.native());
    return failure_ == nullptr;
  }

 private:
  void run();

  NodeLink& link_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> work_;   // [launch - first_]
  std::int64_t first_ = 0;  // written while no work is in progress
  std::int64_t count_ MUSTER_GUARDED_BY(mutex_) = 0, done_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool ending_ MUSTER_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: uses the members above
};

/// What launches of a flight use, in place until all of them are done. Used by one thread.
template <typename Job>
class FlightJobs {
 public:
  Job& next(const Flight& flight) {
    if (flight.idle()) count_ = 0;
    if (count_ == jobs_.size()) jobs_.emplace_back();
    return jobs_[count_++];
  }

 private:
  std::deque<Job> jobs_;
  std::size_t count_ = 0;
};

/// Forms a local participant's means over nodes while its worker trains. Used by one thread at a time.
class NodeFlight {
 public:
  /// @param local, channel  see NodeReduction; the channel is used by nothing else.
  NodeFlight(NodeLink& link, int local, int channel) : reduction_(link, local, channel), flight_(link) {}

  /// @param mean  its tensors and its target must not change until it has landed; its weights are copied.
  void launch(const NodeMean& mean, Slice own);
  Flight& flight() { return flight_; }

 private:
  struct Launch {
    NodeMean mean;
    std::vector<double> weights;  // of the mean
    Slice own = {};
  };

  NodeReduction reduction_;
  FlightJobs<Launch> launches_;
  Flight flight_;  // last: uses the members above
};

/// All-gathers what rules with a codec send (MergeOps::allGatherEncoded): in the call, or while the workers
/// train. Used by one thread at a time.
class EncodedGather {
 public:
  /// @param channel  the first of two that nothing else uses.
  EncodedGather(NodeLink& link, int channel)
      : link_(link), messages_(link, channel), messagesInFlight_(link, channel + 1) {}

  void allowFlights() { flight_ = std::make_unique<Flight>(link_); }
  /// Waits for all launches. None may follow.
  void endFlights() { flight_.reset(); }
  /// Null if nothing is ever launched.
  Flight* flight() { return flight_.get(); }
  /// See MergeOps::allGatherEncoded.
  void run(std::span<std::byte> all, std::span<const double> weights, std::function<void(Context&)> then,
           bool later, Context& context);

 private:
  struct Launch {
    std::span<std::byte> all;
    std::vector<double> weights;
    std::function<void(Context&)> then;
  };
  void gather(std::span<std::byte> all, std::span<const double> weights, NodeMessages& messages) const;

  NodeLink& link_;
  NodeMessages messages_, messagesInFlight_;
  FlightJobs<Launch> launches_;
  std::unique_ptr<Flight> flight_;  // last: uses the members above
};

}  // namespace muster
