#include "muster/parallel/training/arrivals.h"

#include <algorithm>
#include <limits>

namespace muster {

Arrivals::Arrivals(const ArrivalPlan& plan)
    : order_(plan), landing_(plan.speeds.size()), wentOn_(plan.speeds.size()) {}

void Arrivals::beginEpoch() {
  order_.restart();
  std::ranges::fill(wentOn_, 0);
  landings_ = 0;
  ending_ = false;
}

void Arrivals::planNext() {
  if (!ending_) order_.land();
}

std::int64_t Arrivals::iterations(int worker) const {
  return ending_ ? std::numeric_limits<std::int64_t>::max()
                 : order_.dealt()[static_cast<std::size_t>(worker)];
}

void Arrivals::settle(std::span<const Contribution> contributions, bool last) {
  const auto planned = order_.arrivals();
  if (!last)
    for (std::size_t w = 0; w < planned.size(); ++w)
      if (planned[w].arrives && contributions[w].ended) ending_ = true;
  const bool complete = !last && !ending_;
  for (std::size_t w = 0; w < planned.size(); ++w) {
    landing_[w] = last       ? Arrival{.arrives = contributions[w].batches > 0, .goesOn = true}
                  : complete ? planned[w]
                             : Arrival{};
    landing_[w].staleness = landings_ - wentOn_[w];
    if (landing_[w].goesOn) wentOn_[w] = landings_ + 1;
  }
  if (last || complete) ++landings_;
}

}  // namespace muster
