#include "muster/parallel/training/wall_clock_order.h"

#include <algorithm>

namespace muster {

void WallClockOrder::restart() {
  std::ranges::fill(members_, Member{});
  std::ranges::fill(arrivals_, Arrival{});
}

void WallClockOrder::arrive(int worker) {
  Member& arrived = members_[static_cast<std::size_t>(worker)];
  arrived.running = false;
  arrived.pending = true;
  ++arrived.arrived;
  const std::int64_t slowest = std::ranges::min(members_, {}, &Member::arrived).arrived;
  const auto mayGoOn = [&](const Member& m) { return !m.running && m.arrived - slowest <= staleness_; };
  if (std::ranges::none_of(members_, mayGoOn)) return;
  for (std::size_t w = 0; w < members_.size(); ++w)
    arrivals_[w] = {.arrives = members_[w].pending, .resumes = mayGoOn(members_[w])};
}

void WallClockOrder::landed() {
  for (std::size_t w = 0; w < members_.size(); ++w) {
    if (arrivals_[w].arrives) members_[w].pending = false;
    if (arrivals_[w].resumes) members_[w].running = true;
  }
  std::ranges::fill(arrivals_, Arrival{});
}

}  // namespace muster
