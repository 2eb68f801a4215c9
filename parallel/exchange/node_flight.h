#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/exchange/node_reduction.h"

namespace muster {

/// Work over nodes that is done while the workers train, one after the other, on a thread of its own.
class Flight {
 public:
  using Work = std::function<void(Context&)>;

  Flight();
  /// Waits for what was launched.
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  /// Allocates nothing once it has seen as much at a time, unless the work does. By one thread at a time.
  void launch(Work work);
  /// How many were launched.
  std::int64_t launches() const;
  /// Whether all that was launched is done.
  bool idle() const;
  /// Waits for the first so many. @throws what has gone wrong first, every time.
  void land(std::int64_t launches);
  /// Waits for all, whatever goes wrong.
  void wait() noexcept;

 private:
  void run();

  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> work_;   // of launches from first_ on
  std::int64_t first_ = 0;  // written while nothing is under way
  std::int64_t count_ MUSTER_GUARDED_BY(mutex_) = 0, done_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool ending_ MUSTER_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);
  std::jthread thread_;  // last
};

/// A local participant's means over nodes that are formed while its worker trains. Used by one thread at a
/// time.
class NodeFlight {
 public:
  /// @param local, channel  as of NodeReduction; a channel of its own.
  NodeFlight(NodeLink& link, int local, int channel) : reduction_(link, local, channel) {}

  /// Allocates nothing once it has seen as many launches between landings.
  /// @param mean  its tensors and what it writes stay as they are until `land`; its weights are copied.
  void launch(const NodeMean& mean, Slice own);
  /// Whether something was launched that `land` has not been told of.
  bool launched() const { return count_ > 0; }
  /// Waits for all that was launched. @throws what has gone wrong first.
  void land();
  /// As `land`, but keeps for it what has gone wrong.
  void wait() noexcept { flight_.wait(); }

 private:
  struct Launch {
    NodeMean mean;
    std::vector<double> weights;  // the mean's
    Slice own = {};
  };

  NodeReduction reduction_;
  std::deque<Launch> launches_;  // those of an index below count_ are under way
  std::size_t count_ = 0;
  Flight flight_;  // last
};

}  // namespace muster
