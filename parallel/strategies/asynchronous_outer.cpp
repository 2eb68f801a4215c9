#include "muster/parallel/strategies/asynchronous_outer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"

namespace muster {
namespace {

constexpr std::int64_t kMostIterations = std::int64_t{1} << 40;
constexpr double kMostSpeed = 1e6;

constexpr std::string_view kMomentum = "outer momentum", kArrived = "arrived since the outer step",
                           kTaken = "taken", kMean = "mean", kMeanTaken = "mean of what was taken";

OuterStep stepOf(const AsynchronousOuter& options) {
  return {.rate = options.rate, .momentum = options.momentum, .nesterov = options.nesterov};
}

/// The merged copy holds W.
class AsynchronousOuterStrategy final : public Strategy {
 public:
  explicit AsynchronousOuterStrategy(const AsynchronousOuter& options)
      : options_(options), step_(stepOf(options)) {}

  std::string describe() const override;
  std::vector<StrategyBlock> blocks(int workers) const override;
  std::optional<ArrivalPlan> arrivals(int workers) const override;
  UpdaterState updaterState() const override { return options_.updaterState; }
  void begin(const Exchange& exchange) override {
    all_ = Fragment::whole(exchange.block(BlockKind::Parameters).mergedCopy().elements());
    workers_ = exchange.participants();
    perStep_ = options_.arrivalsPerStep > 0 ? options_.arrivalsPerStep : workers_;
    now_ = {};
    arrivedBefore_ = 0;
  }
  void start(Verbs& verbs) override {
    take(verbs, [](std::size_t) { return true; });
  }
  RoundPlan plan(const TrainingProgress&) override {
    arrivedBefore_ = now_.arrived;
    return {.iterations = options_.frequency};
  }
  void land(int, const Round& round, Verbs& verbs) override;
  /// At the end of an epoch an outer step is completed, and all take W.
  bool pending() const override { return now_.apart || (options_.momentum > 0 && now_.arrived > 0); }
  std::span<const MergeValue> values() const override { return values_; }

 private:
  struct Landing {
    std::int64_t arrivals = 0, staleness = 0;
    double share = 0;          // of the arrivals' mean move, by which W moves
    bool completes = false;    // an outer step
    std::int64_t arrived = 0;  // since the last outer step, with these
    bool apart = false;        // not all workers go on from here
  };
  Landing landing(const Round& round) const;
  /// Moves W, and the momentum.
  void move(const Landing& landing, const Round& round, Verbs& verbs) const;
  void mergeOthers(const Landing& landing, const Round& round, Verbs& verbs) const;
  /// Workers take the point from which they go on. @param who  `bool who(worker)`
  template <typename Who>
  void take(Verbs& verbs, Who who) const;

  const AsynchronousOuter options_;
  const OuterStep step_;
  Fragment all_;
  std::int64_t workers_ = 1, perStep_ = 1;
  std::int64_t arrivedBefore_ = 0;  // since the last outer step; written between landings
  Landing now_;                     // the last one; the first participant's
  std::array<MergeValue, 2> values_{{{"arrivals", 0}, {"staleness", 0}}};  // likewise
};

std::string AsynchronousOuterStrategy::describe() const {
  return fmt::format("asynchronous outer steps, an arrival every {} iterations ({})", options_.frequency,
                     step_.describe());
}

std::vector<StrategyBlock> AsynchronousOuterStrategy::blocks(int workers) const {
  arrivals(workers);  // throws if the options do not fit so many
  std::vector<StrategyBlock> all = {
      {.name = std::string(kTaken), .place = StrategyBlock::Place::Replica, .saved = false},
      {.name = std::string(kMean), .dtype = DType::Float64, .saved = false},
      {.name = std::string(kMeanTaken), .dtype = DType::Float64, .saved = false}};
  if (options_.momentum > 0) {
    all.push_back({.name = std::string(kMomentum)});
    all.push_back({.name = std::string(kArrived), .saved = false});
  }
  return all;
}

std::optional<ArrivalPlan> AsynchronousOuterStrategy::arrivals(int workers) const {
  const auto count = static_cast<std::size_t>(workers);
  const auto& speeds = options_.speeds;
  require(speeds.empty() || speeds.size() == count,
          "asynchronous outer: speeds must name one for each of {} workers, got {}", workers, speeds.size());
  require(options_.arrivalsPerStep <= workers,
          "asynchronous outer: arrivalsPerStep must be at most the number of workers, {}, got {}", workers,
          options_.arrivalsPerStep);
  ArrivalPlan plan{.iterations = std::vector<std::int64_t>(count, options_.frequency),
                   .speeds = speeds.empty() ? std::vector<double>(count, 1) : speeds,
                   .grace = options_.grace,
                   .staleness = options_.staleness.value_or(ArrivalPlan::kUnbounded)};
  if (options_.fewerIterationsIfSlow) {
    constexpr double kRounding =
        1e-12;  // a product that only rounding keeps below a whole number counts as one
    const double fastest = std::ranges::max(plan.speeds);
    for (std::size_t w = 0; w < count; ++w) {
      const double share = static_cast<double>(options_.frequency) * plan.speeds[w] / fastest;
      plan.iterations[w] = std::max<std::int64_t>(1, static_cast<std::int64_t>(share * (1 + kRounding)));
    }
  }
  return plan;
}

void AsynchronousOuterStrategy::land(int, const Round& round, Verbs& verbs) {
  const Landing now = landing(round);
  move(now, round, verbs);
  take(verbs, [&](std::size_t worker) { return round.arrivals[worker].goesOn; });
  mergeOthers(now, round, verbs);
  if (verbs.participant() != 0) return;
  now_ = now;
  values_[0].value = static_cast<double>(now.arrivals);
  values_[1].value = static_cast<double>(now.staleness);
}

AsynchronousOuterStrategy::Landing AsynchronousOuterStrategy::landing(const Round& round) const {
  Landing now;
  for (std::size_t w = 0; w < round.weights.size(); ++w) {
    now.apart = now.apart || !round.arrivals[w].goesOn;
    if (round.weights[w] == 0) continue;
    ++now.arrivals;
    now.staleness = std::max(now.staleness, round.arrivals[w].staleness);
  }
  // At the end the workers that have trained complete an outer step that has begun.
  const bool begun = arrivedBefore_ + now.arrivals > 0;
  const std::int64_t counted =
      round.last && begun ? std::max(now.arrivals, perStep_ - arrivedBefore_) : now.arrivals;
  if (now.arrivals > 0)
    now.share = options_.rate * (static_cast<double>(counted) / static_cast<double>(perStep_));
  now.completes = arrivedBefore_ + counted >= perStep_;
  now.arrived = now.completes ? 0 : arrivedBefore_ + counted;
  return now;
}

void AsynchronousOuterStrategy::move(const Landing& now, const Round& round, Verbs& verbs) const {
  const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
  const std::span<const Tensor> outer = parameters.mergedCopies;
  const auto mean = verbs.own(kMean), meanTaken = verbs.own(kMeanTaken);
  // What was taken from the present W is known without rounding: so that the bits are those of
  // OuterAveraging if all arrive together, and those of the replica with rate 1 and one worker.
  const bool fresh = now.staleness == 0;
  if (now.arrivals > 0) {
    verbs.mean(parameters.replicas, round.weights, mean, all_);
    if (!fresh) verbs.mean(verbs.own(kTaken), round.weights, meanTaken, all_);
  }
  const double share = now.share, kept = fresh ? 1 - share : 1, stale = fresh ? 0 : -share;
  if (options_.momentum == 0)
    return verbs.combine(outer, {{share, mean}, {kept, outer}, {stale, meanTaken}}, all_);
  const auto momentum = verbs.own(kMomentum), arrived = verbs.own(kArrived);
  const double before = arrivedBefore_ > 0 ? 1 : 0;
  const double eta =
      options_.momentum * ((now.completes ? 1.0 : 0.0) - (options_.nesterov && fresh ? share : 0.0));
  verbs.combine(
      now.completes ? momentum : arrived,
      {{eta, momentum}, {share, mean}, {fresh ? -share : 0, outer}, {stale, meanTaken}, {before, arrived}},
      all_);
  if (now.completes)
    verbs.combine(outer, {{1, outer}, {1, momentum}, {-before, arrived}}, all_);
  else
    verbs.combine(outer, {{share, mean}, {kept, outer}, {stale, meanTaken}, {eta, momentum}}, all_);
}

template <typename Who>
void AsynchronousOuterStrategy::take(Verbs& verbs, Who who) const {
  const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
  const auto momentum = step_.look(verbs), taken = verbs.own(kTaken);
  verbs.eachShare(parameters.mergedCopy().elements(), [&](const Share& share) {
    const auto [begin, end] = share.slice;
    for (const std::size_t w : share.workers) {
      if (!who(w)) continue;
      const Tensor& replica = parameters.replicas[w];
      linearCombination(std::array{Term{1, parameters.mergedCopies[w]}, Term{step_.ahead(), momentum[w]}},
                        replica, begin, end, share.context);
      linearCombination(std::array{Term{1, replica}}, taken[w], begin, end, share.context);
    }
  });
}

void AsynchronousOuterStrategy::mergeOthers(const Landing& now, const Round& round, Verbs& verbs) const {
  const bool together = now.arrivals == workers_ || round.last;
  for (const SharedBlock& block : verbs.blocks()) {
    const bool reset = block.rule == MergeRule::Reset;
    if ((block.kind != BlockKind::UpdaterState && block.kind != BlockKind::Statistics) ||
        block.rule == MergeRule::Keep || now.arrivals == 0)
      continue;
    if (together) {
      verbs.merge(block, round.weights);
      continue;
    }
    const auto whole = Fragment::whole(block.mergedCopy().elements());
    if (reset)
      verbs.combine(block.mergedCopies, {}, whole);
    else
      verbs.mean(block.replicas, round.weights, block.mergedCopies, whole,
                 1 - static_cast<double>(now.arrivals) / static_cast<double>(workers_));
    verbs.eachShare(block.mergedCopy().elements(), [&](const Share& share) {
      for (const std::size_t w : share.workers)
        if (round.arrivals[w].goesOn)
          linearCombination(std::array{Term{1, block.mergedCopies[w]}}, block.replicas[w], share.slice.begin,
                            share.slice.end, share.context);
    });
  }
}

}  // namespace

AsynchronousOuter AsynchronousOuter::delayedNesterov(std::vector<double> speeds) {
  return {.frequency = 50,
          .rate = 0.7,
          .momentum = 0.9,
          .nesterov = true,
          .speeds = std::move(speeds),
          .fewerIterationsIfSlow = true};
}

void AsynchronousOuter::validate() const {
  require(frequency >= 1 && frequency <= kMostIterations,
          "asynchronous outer: frequency must be between 1 and {}, got {}", kMostIterations, frequency);
  stepOf(*this).validate("asynchronous outer");
  require(arrivalsPerStep >= 0, "asynchronous outer: arrivalsPerStep cannot be negative, got {}",
          arrivalsPerStep);
  for (const double speed : speeds)
    require(speed >= 1 / kMostSpeed && speed <= kMostSpeed,
            "asynchronous outer: speeds must be between {} and {}, got {}", 1 / kMostSpeed, kMostSpeed,
            speed);
  require(staleness.value_or(0) >= 0, "asynchronous outer: staleness cannot be negative, got {}",
          staleness.value_or(0));
  require(grace >= 0, "asynchronous outer: grace must be at least 0, got {}", grace);
  muster::validate(updaterState);
  require(updaterState != UpdaterState::Average,
          "asynchronous outer: updaterState cannot be Average, since workers do not meet; use Keep or Reset");
}

std::unique_ptr<Strategy> AsynchronousOuter::make() const {
  return std::make_unique<AsynchronousOuterStrategy>(*this);
}

void AsynchronousOuter::fields(Fields& f) {
  f.field("every", frequency);
  f.field("rate", rate);
  f.field("momentum", momentum);
  f.field("nesterov", nesterov);
  f.field("arrivalsPerStep", arrivalsPerStep);
  detail::listField(f, "speeds", speeds, "equal");
  f.field("fewerIterationsIfSlow", fewerIterationsIfSlow);
  detail::optionalField(f, "staleness", staleness);
  f.field("grace", grace);
  f.field("updaterState", updaterState);
}

std::vector<NamedStrategy> AsynchronousOuter::named(int) {
  return {{"asynchronous", "outer steps by arrivals, without rounds, on a virtual clock of declared speeds",
           "Liu et al. 2024", AsynchronousOuter{.frequency = 10}},
          {"delayed-nesterov", "the same, with momentum at every N-th arrival; N is arrivalsPerStep",
           "Liu et al. 2024", delayedNesterov()}};
}

}  // namespace muster
