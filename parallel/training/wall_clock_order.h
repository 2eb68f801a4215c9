#pragma once

#include <span>
#include <vector>

#include "muster/parallel/strategies/arrivals.h"

namespace muster {

/// Which workers land together on the wall clock: those that have arrived, as soon as one may continue.
/// It starts again with every epoch.
class WallClockOrder {
 public:
  WallClockOrder(std::size_t workers, std::int64_t staleness)
      : staleness_(staleness), members_(workers), arrivals_(workers) {}

  /// An epoch begins: all workers run.
  void restart();
  /// A worker that runs has arrived.
  void arrive(int worker);
  bool runs(int worker) const { return members_[static_cast<std::size_t>(worker)].running; }
  /// [worker] The landing that can be carried out now, without staleness. No worker arrives in it if no
  /// landing is possible yet.
  std::span<const Arrival> arrivals() const { return arrivals_; }
  /// Call it once that landing was carried out.
  void landed();

 private:
  struct Member {
    bool running = true;
    bool pending = false;      // it has arrived and not landed
    std::int64_t arrived = 0;  // number of its arrivals
  };
  std::int64_t staleness_;
  std::vector<Member> members_;
  std::vector<Arrival> arrivals_;
};

}  // namespace muster
