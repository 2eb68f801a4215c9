#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <thread>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/exchange/node_reduction.h"

namespace muster {

/// A local participant's means over nodes that are formed while its worker trains, one after the other, on a
/// thread of their own. Used by one thread at a time.
class NodeFlight {
 public:
  /// @param local, channel  as of NodeReduction; a channel of its own.
  NodeFlight(NodeLink& link, int local, int channel);
  /// Waits for what was launched.
  ~NodeFlight();
  NodeFlight(const NodeFlight&) = delete;
  NodeFlight& operator=(const NodeFlight&) = delete;

  /// Allocates nothing once it has seen as many launches between landings.
  /// @param mean  its tensors and what it writes stay as they are until `land`; its weights are copied.
  void launch(const NodeMean& mean, Slice own);
  /// Whether something was launched that `land` has not been told of.
  bool launched() const { return launched_; }
  /// Waits for all that was launched. @throws what has gone wrong first.
  void land();
  /// As `land`, but keeps for it what has gone wrong.
  void wait() noexcept;

 private:
  struct Launch {
    NodeMean mean;
    std::vector<double> weights;  // the mean's
    Slice own = {};
  };

  void run();

  NodeReduction reduction_;
  bool launched_ = false;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Launch> launches_;  // those of an index from done_ to count_ are under way
  std::size_t count_ MUSTER_GUARDED_BY(mutex_) = 0, done_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool ending_ MUSTER_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);
  std::jthread thread_;  // last
};

}  // namespace muster
