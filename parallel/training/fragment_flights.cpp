#include "muster/parallel/training/fragment_flights.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/nn/training_state.h"

namespace muster {
namespace {

bool anyAbove0(std::span<const double> weights) {
  return std::ranges::any_of(weights, [](double weight) { return weight > 0; });
}

}  // namespace

void FragmentFlights::begin(int fragments) {
  require(fragments >= 1 && fragments <= 64, "the strategy must have between 1 and 64 fragments, got {}",
          fragments);
  const auto count = static_cast<std::size_t>(fragments);
  if (fragments_.empty())
    fragments_.assign(count, {std::vector<double>(workers_), std::vector<double>(workers_)});
  requireSaved(fragments_.size() == count, "training state: it is of {} fragments, but the strategy has {}",
               fragments_.size(), fragments);
}

std::vector<double> FragmentFlights::weights() const {
  std::vector<double> all;
  for (const Fragment& fragment : fragments_) {
    all.insert(all.end(), fragment.sinceLaunch.begin(), fragment.sinceLaunch.end());
    all.insert(all.end(), fragment.launched.begin(), fragment.launched.end());
    all.push_back(static_cast<double>(fragment.launchedAt));
  }
  return all;
}

void FragmentFlights::resume(FragmentSet inFlight, std::span<const double> weights) {
  const std::size_t each = 2 * workers_ + 1, count = weights.size() / each;
  const bool possible = weights.size() == count * each && count >= 1 && count <= 64;
  requireSaved(possible && (inFlight & ~FragmentSet::all(static_cast<int>(count))).empty(),
               "training state: {} weights of fragments and those in flight ({:#x}) cannot be of {}",
               weights.size(), inFlight.bits, plural(workers_, "worker"));
  fragments_.assign(count, {std::vector<double>(workers_), std::vector<double>(workers_)});
  inFlight_ = inFlight;
  for (Fragment& fragment : fragments_) {
    std::ranges::copy(weights.first(workers_), fragment.sinceLaunch.begin());
    std::ranges::copy(weights.subspan(workers_, workers_), fragment.launched.begin());
    fragment.launchedAt = static_cast<std::int64_t>(weights[2 * workers_]);
    weights = weights.subspan(2 * workers_ + 1);
  }
}

bool FragmentFlights::outstanding() const {
  return !inFlight_.empty() ||
         std::ranges::any_of(fragments_, [](const Fragment& f) { return anyAbove0(f.sinceLaunch); });
}

void FragmentFlights::endRound(const RoundPlan& plan, const Round& round, bool pending) {
  const bool trained = anyAbove0(round.weights);
  FragmentSet untrained;
  for (std::size_t f = 0; f < fragments_.size(); ++f) {
    for (std::size_t w = 0; w < workers_; ++w) fragments_[f].sinceLaunch[w] += round.weights[w];
    if (!anyAbove0(fragments_[f].sinceLaunch)) untrained = untrained | FragmentSet::of(static_cast<int>(f));
    fragments_[f].launchesAt = round.iteration;
  }
  const FragmentSet all = FragmentSet::all(static_cast<int>(fragments_.size()));
  const FragmentSet land = round.last ? all : plan.land & all;
  launch_ = (round.last ? all : trained ? plan.launch : FragmentSet::none()) & all & ~untrained;
  launched_ = !launch_.empty();
  landFirst_ = inFlight_ & land;
  landAfterwards_ = round.last ? launch_ : launch_ & land & ~inFlight_;
  if (!trained && pending) landAfterwards_ = landAfterwards_ | (all & ~inFlight_);
  const FragmentSet again = launch_ & inFlight_ & ~landFirst_;
  require(again.empty(), "the strategy's plan: fragments {:#x} are launched again before they land",
          again.bits);
  inFlight_ = ((inFlight_ & ~landFirst_) | launch_) & ~landAfterwards_;
}

void FragmentFlights::call(Strategy& strategy, const Round& round, MergeOps& ops) const {
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    const int f = static_cast<int>(i);
    const Fragment& fragment = fragments_[i];
    Round at = round;
    if (landFirst_.contains(f)) {
      at.weights = fragment.launched;
      at.launched = fragment.launchedAt;
      strategy.land(f, at, ops);
    }
    at.weights = fragment.sinceLaunch;
    at.launched = fragment.launchesAt;
    at.landsAtOnce = landAfterwards_.contains(f);
    if (launch_.contains(f)) strategy.launch(f, at, ops);
    if (landAfterwards_.contains(f)) strategy.land(f, at, ops);
  }
}

void FragmentFlights::commit() {
  for (std::size_t f = 0; f < fragments_.size(); ++f) {
    if (!launch_.contains(static_cast<int>(f))) continue;
    fragments_[f].launched.swap(fragments_[f].sinceLaunch);
    std::ranges::fill(fragments_[f].sinceLaunch, 0.0);
    fragments_[f].launchedAt = fragments_[f].launchesAt;
  }
  launch_ = {};
}

}  // namespace muster
