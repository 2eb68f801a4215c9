#include "muster/parallel/training/arrivals.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace muster {
namespace {

/// The position once the batches `trained` are trained, too.
EpochPosition with(const EpochPosition& begun, std::int64_t firstUntrained,
                   std::span<const std::int64_t> trained) {
  EpochPosition now = begun;
  now.trainedLater.insert(now.trainedLater.end(), trained.begin(), trained.end());
  now.nextBatch = firstUntrained;
  std::erase_if(now.trainedLater, [&](std::int64_t batch) { return batch < firstUntrained; });
  std::ranges::sort(now.trainedLater);
  return now;
}

}  // namespace

Arrivals::Arrivals(const ArrivalPlan& plan, const Schedule& learningRate)
    : order_(plan, learningRate),
      landing_(plan.speeds.size()),
      resumedAt_(plan.speeds.size()),
      due_(plan.speeds.size()),
      iterations_(plan.speeds.size()) {}

void Arrivals::beginEpoch(std::int64_t iteration, std::int64_t epoch, std::int64_t landings) {
  std::ranges::fill(resumedAt_, 0);
  std::ranges::fill(due_, 0);
  landings_ = 0;
  ending_ = false;
  order_.restart(iteration, epoch);
  for (std::size_t w = 0; w < iterations_.size(); ++w)
    iterations_[w] = order_.iterations(static_cast<int>(w));
  while (landings_ < landings) {
    planNext();
    countLanding(order_.arrivals());
  }
}

void Arrivals::planNext() {
  if (ending_) return;
  if (onWallClock()) return order_.landArrived();
  order_.land();
  for (std::size_t w = 0; w < due_.size(); ++w) due_[w] += order_.dealt()[w];
}

std::int64_t Arrivals::untilLanding(int worker, std::int64_t batches) const {
  if (ending_) return std::numeric_limits<std::int64_t>::max();
  if (onWallClock() && !order_.runs(worker)) return 0;
  const std::int64_t due = onWallClock() ? iterations(worker) : due_[static_cast<std::size_t>(worker)];
  return std::max<std::int64_t>(0, due - batches);
}

void Arrivals::countLanding(std::span<const Arrival> landing) {
  ++landings_;
  for (std::size_t w = 0; w < landing.size(); ++w) {
    if (landing[w].resumes) resumedAt_[w] = landings_;
    if (landing[w].arrives) due_[w] = 0;
  }
}

void Arrivals::chooseLanding(std::span<const Contribution> contributions, bool last, bool met) {
  if (onWallClock() && met && !last) {
    for (int w = 0; w < static_cast<int>(contributions.size()); ++w)
      if (hasArrived(w, contributions[static_cast<std::size_t>(w)].batches)) order_.arrive(w);
    order_.landArrived();
  }
  const auto planned = next();
  bool complete = !last && std::ranges::any_of(planned, &Arrival::arrives);
  for (std::size_t w = 0; w < planned.size(); ++w)
    if (!last && contributions[w].ended && (onWallClock() ? met : planned[w].arrives)) ending_ = true;
  if (ending_) complete = false;
  std::int64_t iteration = 0;
  for (std::size_t w = 0; w < planned.size(); ++w) {
    landing_[w] = last       ? Arrival{.arrives = contributions[w].batches > 0, .resumes = true}
                  : complete ? planned[w]
                             : Arrival{};
    landing_[w].staleness = landings_ - resumedAt_[w];
    iteration = std::max(iteration, contributions[w].iteration);
  }
  if (!last && !complete) return;
  countLanding(landing_);
  for (int w = 0; complete && w < static_cast<int>(landing_.size()); ++w) {
    if (!landing_[static_cast<std::size_t>(w)].resumes) continue;
    if (onWallClock()) order_.depart(w, iteration);
    iterations_[static_cast<std::size_t>(w)] = order_.iterations(w);
  }
}

EpochPosition afterDealing(const EpochPosition& begun, ArrivalOrder order, std::vector<std::int64_t> counts) {
  std::int64_t left = std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), first = -1;
  std::vector<std::int64_t> trained;
  for (std::int64_t i = 0; left > 0; ++i) {
    std::int64_t& own = counts[static_cast<std::size_t>(order.deal())];
    const std::int64_t batch = begun.untrained(i);
    if (own > 0) {
      --own;
      --left;
      trained.push_back(batch);
    } else if (first < 0) {
      first = batch;
    }
  }
  if (first < 0) first = begun.untrained(static_cast<std::int64_t>(trained.size()));
  return with(begun, first, trained);
}

EpochPosition afterTaking(const EpochPosition& begun, std::int64_t taken,
                          std::span<const std::int64_t> untrained) {
  std::vector<std::int64_t> trained;
  std::int64_t first = begun.untrained(taken);
  for (const std::int64_t batch : untrained) first = std::min(first, batch);
  for (std::int64_t i = 0; i < taken; ++i)
    if (const auto batch = begun.untrained(i); std::ranges::find(untrained, batch) == untrained.end())
      trained.push_back(batch);
  return with(begun, first, trained);
}

}  // namespace muster
