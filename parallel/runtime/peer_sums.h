#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/device/peers.h"

namespace muster {

/// What a worker is told that waited for another one in vain: that one's failure is the one to tell.
class PeerFailure : public Error {
 public:
  using Error::Error;
};

/// Where workers add up numbers in the middle of their steps. Whoever takes part waits in `sum` for all
/// others that do; the last to arrive adds the values up in worker order, so their bits depend on nothing
/// else. All members are thread-safe.
class PeerSums {
 public:
  /// All workers take part.
  explicit PeerSums(int workers);

  /// From now on the first `participants` workers take part, also after an abort. While nobody is in `sum`.
  void begin(int participants);
  void beginAll() { begin(static_cast<int>(slots_.size())); }
  /// The worker has no more steps until the next `begin`: nobody waits for it.
  void leave(int worker);
  /// Wakes everyone; until the next `begin` all calls of `sum` fail.
  void abort();

  /// Replaces the worker's values by the sums over all that take part. Allocates nothing once it has met as
  /// many values.
  /// @throws PeerFailure if it is aborted, or if the workers come with different numbers of values.
  void sum(int worker, std::span<double> values);

 private:
  struct Slot {
    bool takesPart = true, arrived = false;
    std::span<double> values = {};
  };
  /// Adds up and lets everyone go on.
  void complete();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;  // [worker] guarded by mutex_, like everything below
  std::vector<double> total_;
  int participants_, arrived_ = 0;
  std::uint64_t generation_ = 0;
  bool aborted_ = false;
  std::string problem_;  // of an abort that the exchange itself has found the reason for
};

/// One worker's end of an exchange.
class PeerEnd final : public Peers {
 public:
  PeerEnd(PeerSums& exchange, int worker) : exchange_(exchange), worker_(worker) {}
  void sum(std::span<double> values) override { exchange_.sum(worker_, values); }

 private:
  PeerSums& exchange_;
  const int worker_;
};

}  // namespace muster
