#pragma once

#include <condition_variable>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"
#include "muster/core/device/peers.h"

namespace muster {

/// Thrown in workers whose peer failed while they waited for it. Report the peer's exception instead.
class PeerFailure : public Error {
 public:
  using Error::Error;
};

/// Sums over workers in the middle of their steps. Each worker that takes part waits in `sum` for the others;
/// the last to arrive adds the values in worker order, so the bits do not depend on timing. All
/// members are thread-safe.
class PeerSums {
 public:
  /// All workers take part.
  /// @param together  so many neighbours are added up first, then their sums. 1: all in one sum.
  explicit PeerSums(int workers, int together = 1);

  /// From now on the first `participants` workers take part, also after an abort. Call it while no worker is
  /// in `sum`.
  void begin(int participants);
  void beginAll() { begin(workers_); }
  /// The worker has no more steps until the next `begin`: the others do not wait for it.
  void leave(int worker);
  /// Wakes all waiting workers; until the next `begin` all calls of `sum` fail.
  void abort();

  /// Replaces the worker's values by the sums over all workers that take part. Allocates only for more values
  /// than in earlier calls.
  /// @throws PeerFailure after an abort, or if the workers pass different numbers of values.
  void sum(int worker, std::span<double> values);

 private:
  struct Slot {
    bool takesPart = true, arrived = false;
    std::span<double> values = {};
  };
  /// Adds the values and lets all workers continue.
  void complete() MUSTER_REQUIRES(mutex_);

  Mutex mutex_;
  std::condition_variable changed_;
  const int workers_;
  const std::size_t together_;
  std::vector<Slot> slots_ MUSTER_GUARDED_BY(mutex_);  // [worker]
  std::vector<double> total_ MUSTER_GUARDED_BY(mutex_), ofNeighbours_ MUSTER_GUARDED_BY(mutex_);
  int participants_ MUSTER_GUARDED_BY(mutex_), arrived_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t generation_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool aborted_ MUSTER_GUARDED_BY(mutex_) = false;
  /// Why `complete` has aborted; "" if another worker failed.
  std::string problem_ MUSTER_GUARDED_BY(mutex_);
};

/// Access of one worker to the PeerSums.
class PeerEnd final : public Peers {
 public:
  PeerEnd(PeerSums& exchange, int worker) : exchange_(exchange), worker_(worker) {}
  void sum(std::span<double> values) override { exchange_.sum(worker_, values); }

 private:
  PeerSums& exchange_;
  const int worker_;
};

}  // namespace muster
