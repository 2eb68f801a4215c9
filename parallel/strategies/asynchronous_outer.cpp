#include "muster/parallel/strategies/asynchronous_outer.h"

#include <algorithm>
#include <span>
#include <variant>

#include "muster/core/base/plural.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/periodic_strategy.h"
#include "muster/parallel/strategies/saved_numbers.h"

namespace muster {
namespace {

constexpr const char *kRule = "asynchronous outer", *kArrived = "arrived since the outer step",
                     *kTaken = "taken", *kMeanTaken = "mean of what was taken", *kLanding = "last landing";
constexpr double kMostSpeed = 1e6;

/// The numbers of block kLanding.
struct LastLanding {
  double sinceStep = 0;  // arrivals since the last outer step
  double apart = 0;      // whether some worker did not continue
};

/// The merged copy holds W.
class AsynchronousOuterStrategy final : public PeriodicStrategy<AsynchronousOuter> {
 public:
  using PeriodicStrategy::PeriodicStrategy;

  std::string describe() const override {
    const bool wall = options_.clock == ArrivalClock::Wall;
    return fmt::format("asynchronous outer steps, an arrival {} ({}){}{}", options_.frequency.describe(),
                       step_.describe(), muster::describe(options_.codec),
                       wall ? ", on the wall clock: a run cannot be repeated" : "");
  }
  std::vector<StrategyBlock> blocks(int workers) const override {
    arrivals(workers);  // throws if the options do not fit this number of workers
    std::vector<StrategyBlock> all = {
        {.name = kTaken, .place = StrategyBlock::Place::Replica, .inFlight = true},
        {.name = kLanding,
         .place = StrategyBlock::Place::Replica,
         .numbers = detail::kNumbersOf<LastLanding>,
         .counts = true,
         .inFlight = true},
        {.name = OuterStep::kMean, .dtype = DType::Float64, .saved = false},
        {.name = kMeanTaken, .dtype = DType::Float64, .saved = false}};
    if (options_.momentum > 0) {
      all.push_back({.name = OuterStep::kMomentum});
      all.push_back({.name = kArrived, .inFlight = true});
    }
    return withCommon(std::move(all), /*means=*/false);
  }
  StrategyTraits traits(int workers) const override {
    return {.updaterState = options_.updaterState, .arrivals = arrivals(workers), .mayThrow = false};
  }
  void begin(const Exchange& exchange) override {
    PeriodicStrategy::begin(exchange);
    workers_ = exchange.participants();
    perStep_ = options_.arrivalsPerStep > 0 ? options_.arrivalsPerStep : workers_;
    memory_ = exchange.strategyBlock(kLanding).values.front();
    arrivedBefore_ = static_cast<std::int64_t>(last().sinceStep);
  }
  void start(MergeOps& ops) override {
    take(ops, [](std::size_t) { return true; });
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    if (memory_.defined()) arrivedBefore_ = static_cast<std::int64_t>(last().sinceStep);
    return PeriodicStrategy::plan(progress);
  }
  void land(int, const Round& round, MergeOps& ops) override {
    const Landing now = landing(round);
    move(now, round, ops);
    take(ops, [&](std::size_t w) { return round.arrivals[w].resumes; });
    mergeOthers(now, round, ops);
    if (ops.participant() != 0) return;
    last() = {static_cast<double>(now.arrived), now.apart ? 1.0 : 0.0};
    values_[0].value = static_cast<double>(now.arrivals);
    values_[1].value = static_cast<double>(now.staleness);
  }
  /// At the end of an epoch the outer step is completed, and all workers take W.
  bool pending() const override {
    return last().apart != 0 || (options_.momentum > 0 && last().sinceStep > 0);
  }
  MergeReport report() const override {
    values_[2] = period_.value();
    return {.values = values_};
  }

 private:
  ArrivalPlan arrivals(int workers) const {
    const auto count = static_cast<std::size_t>(workers);
    const auto& speeds = options_.speeds;
    require(speeds.empty() || speeds.size() == count, "{}: speeds must name one for each of {}, got {}",
            kRule, plural(workers, "worker"), speeds.size());
    require(options_.arrivalsPerStep <= workers,
            "{}: arrivalsPerStep must be at most the number of workers, {}, got {}", kRule, workers,
            options_.arrivalsPerStep);
    ArrivalPlan plan{.iterations = {},
                     .speeds = speeds.empty() ? std::vector<double>(count, 1) : speeds,
                     .grace = options_.grace,
                     .staleness = options_.staleness.value_or(ArrivalPlan::kUnbounded),
                     .wallClock = options_.clock == ArrivalClock::Wall};
    const Period& period = options_.frequency;
    for (int w = 0; w < workers; ++w) plan.iterations.push_back(iterationsOf(w, period.every, plan.speeds));
    if (!period.constant() || period.until > 0 || period.untilEpoch > 0)
      plan.iterationsFrom = [this, workers, own = plan.speeds](const Departure& from) {
        const TrainingProgress now{.workers = workers,
                                   .epoch = from.epoch,
                                   .iteration = from.iteration,
                                   .learningRate = from.learningRate};
        return iterationsOf(from.worker, options_.frequency.at(now), own);
      };
    return plan;
  }
  /// A worker's iterations. @param iterations  those of the fastest worker.
  std::int64_t iterationsOf(int worker, std::int64_t iterations, std::span<const double> speeds) const {
    if (!options_.fewerIterationsIfSlow) return iterations;
    constexpr double kRounding = 1e-12;  // a value just below a whole number counts as that number
    const double ratio = speeds[static_cast<std::size_t>(worker)] / std::ranges::max(speeds);
    const double share = static_cast<double>(iterations) * ratio;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(share * (1 + kRounding)));
  }

  struct Landing {
    std::int64_t arrivals = 0, staleness = 0;
    double share = 0;          // factor of the arrivals' mean move, by which W moves
    bool completes = false;    // whether it completes an outer step
    std::int64_t arrived = 0;  // arrivals since the last outer step, with these
    bool apart = false;        // whether some worker does not continue from here
  };
  LastLanding& last() const { return detail::numbersOf<LastLanding>(memory_); }
  Landing landing(const Round& round) const {
    Landing now;
    for (std::size_t w = 0; w < round.weights.size(); ++w) {
      now.apart = now.apart || !round.arrivals[w].resumes;
      if (round.weights[w] == 0) continue;
      ++now.arrivals;
      now.staleness = std::max(now.staleness, round.arrivals[w].staleness);
    }
    // In the last round the workers that have trained complete an outer step that has begun.
    const bool begun = arrivedBefore_ + now.arrivals > 0;
    const std::int64_t counted =
        round.last && begun ? std::max(now.arrivals, perStep_ - arrivedBefore_) : now.arrivals;
    if (now.arrivals > 0)
      now.share = options_.rate * (static_cast<double>(counted) / static_cast<double>(perStep_));
    now.completes = arrivedBefore_ + counted >= perStep_;
    now.arrived = now.completes ? 0 : arrivedBefore_ + counted;
    return now;
  }
  /// Changes W and the momentum.
  void move(const Landing& now, const Round& round, MergeOps& ops) const {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const std::span<const Tensor> outer = parameters.mergedCopies;
    const auto mean = ops.own(OuterStep::kMean), meanTaken = ops.own(kMeanTaken);
    // If all arrivals took the current W, use it without rounding: then the bits are those of OuterAveraging
    // if all arrive together, and those of the replica with rate 1 and one worker.
    const bool fresh = now.staleness == 0;
    if (now.arrivals > 0) {
      const auto sent = sending_.send(round.weights, {{1, ops.own(kTaken)}}, /*remember=*/1, all_, ops);
      ops.mean(sent, round.weights, mean, all_);
      if (!fresh) ops.mean(ops.own(kTaken), round.weights, meanTaken, all_);
    }
    const double share = now.share, kept = fresh ? 1 - share : 1, stale = fresh ? 0 : -share;
    if (options_.momentum == 0)
      return ops.combine(outer, {{share, mean}, {kept, outer}, {stale, meanTaken}}, all_);
    const auto momentum = ops.own(OuterStep::kMomentum), arrived = ops.own(kArrived);
    const double before = arrivedBefore_ > 0 ? 1 : 0;
    const double eta =
        options_.momentum * ((now.completes ? 1.0 : 0.0) - (options_.nesterov && fresh ? share : 0.0));
    ops.combine(
        now.completes ? momentum : arrived,
        {{eta, momentum}, {share, mean}, {fresh ? -share : 0, outer}, {stale, meanTaken}, {before, arrived}},
        all_);
    if (now.completes)
      ops.combine(outer, {{1, outer}, {1, momentum}, {-before, arrived}}, all_);
    else
      ops.combine(outer, {{share, mean}, {kept, outer}, {stale, meanTaken}, {eta, momentum}}, all_);
  }
  void mergeOthers(const Landing& now, const Round& round, MergeOps& ops) const {
    if (now.arrivals == 0) return;
    if (now.arrivals == workers_ || round.last) return ops.mergeOthers(round.weights);
    for (const SharedBlock& block : ops.blocks()) {
      if ((block.kind != BlockKind::UpdaterState && block.kind != BlockKind::Statistics) ||
          block.rule == MergeRule::Keep)
        continue;
      ops.mergeCopy(block, round.weights,
                    1 - static_cast<double>(now.arrivals) / static_cast<double>(workers_));
      if (block.kind == BlockKind::UpdaterState)  // reset, since it is neither kept nor averaged
        ops.noteReset(block, [&](std::size_t w) { return round.arrivals[w].resumes; });
      // For means and variances a participant's share is the same part of both halves.
      const std::int64_t parts = block.rule == MergeRule::Moments ? 2 : 1;
      const std::int64_t elements = block.mergedCopy().elements() / parts;
      ops.eachShare(elements, [&](const Share& share) {
        for (const std::size_t w : share.workers)
          for (std::int64_t p = 0; p < parts && round.arrivals[w].resumes; ++p)
            linearCombination(std::array{Term{1, block.mergedCopies[w]}}, block.replicas[w],
                              share.slice.begin + p * elements, share.slice.end + p * elements,
                              share.context);
      });
    }
  }
  /// Sets the replicas of workers that continue to their start point. @param resumes  `bool resumes(worker)`.
  template <typename Resumes>
  void take(MergeOps& ops, Resumes resumes) const {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    ops.combineFor(resumes, parameters.replicas,
                   {{1, parameters.mergedCopies}, {step_.ahead(), step_.lookAhead(ops)}});
    ops.combineFor(resumes, ops.own(kTaken), {{1, parameters.replicas}});
  }

  const OuterStep step_ = OuterStep::of(options_);
  std::int64_t workers_ = 1, perStep_ = 1;
  std::int64_t arrivedBefore_ = 0;  // since the last outer step; written between landings
  Tensor memory_;                   // the first worker's block kLanding; written by the first participant
  mutable std::array<MergeValue, 3> values_{{{"arrivals", 0}, {"staleness", 0}, {}}};  // like memory_
};

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
  detail::validateParts(*this, kRule);
  require(!std::holds_alternative<AdaComm>(frequency.adapted),
          "{}: period cannot be AdaComm, since batches are dealt before there are scores to adapt to", kRule);
  OuterStep::of(*this).validate(kRule);
  require(arrivalsPerStep >= 0, "{}: arrivalsPerStep cannot be negative, got {}", kRule, arrivalsPerStep);
  require(clock == ArrivalClock::Virtual || clock == ArrivalClock::Wall, "{}: there is no clock {}", kRule,
          static_cast<int>(clock));
  for (const double speed : speeds)
    require(speed >= 1 / kMostSpeed && speed <= kMostSpeed, "{}: speeds must be between {} and {}, got {}",
            kRule, 1 / kMostSpeed, kMostSpeed, speed);
  require(staleness.value_or(0) >= 0, "{}: staleness cannot be negative, got {}", kRule,
          staleness.value_or(0));
  require(grace >= 0, "{}: grace must be at least 0, got {}", kRule, grace);
  if (clock == ArrivalClock::Wall) {
    require(grace == 0, "{}: grace is virtual time, so on the wall clock it must be 0, got {}", kRule, grace);
    require(speeds.empty() || fewerIterationsIfSlow,
            "{}: speeds only count for fewerIterationsIfSlow on the wall clock; give that, too, or no speeds",
            kRule);
  }
  require(updaterState != UpdaterState::Average,
          "{}: updaterState cannot be Average, since workers are merged one by one; use Keep or Reset",
          kRule);
}

void AsynchronousOuter::fields(Fields& f) {
  frequency.fields(f);
  f.field("rate", rate, "outer learning rate, above 0", "(0, )");
  f.field("momentum", momentum, "outer momentum, from 0 to below 1", "[0, 1)");
  f.field("nesterov", nesterov, "workers continue from the look-ahead point");
  f.field("arrivalsPerStep", arrivalsPerStep, "arrivals in an outer step; 0: the number of workers", "[0, )");
  f.field("clock", clock,
          "virtual: arrivals by declared speeds, the same bits in every run; wall: as workers really arrive");
  f.describe("how fast each worker is, as in 1,0.5; equal: all are equally fast", "[1e-6, 1e6]");
  detail::listField(f, "speeds", speeds, "equal");
  f.field("fewerIterationsIfSlow", fewerIterationsIfSlow,
          "a slower worker has fewer iterations between arrivals");
  f.describe("arrivals by which a worker may be ahead of another; none: any number", "[0, )");
  detail::optionalField(f, "staleness", staleness);
  f.field("grace", grace,
          "arrivals within this time after the first one are merged together; 0: each by itself", "[0, )");
  f.field("updaterState", updaterState,
          "what an arrival does with the worker's updater state: keep or reset");
  codecFields(f, codec);
}

std::vector<NamedStrategy> AsynchronousOuter::named(int) {
  return {
      {"asynchronous", "outer steps by arrivals, without rounds, by declared speeds or on the wall clock",
       "Liu et al. 2024", AsynchronousOuter{.frequency = 10}},
      {"delayed-nesterov", "outer steps by arrivals, with momentum at every N-th one; N is arrivalsPerStep",
       "Liu et al. 2024", delayedNesterov()}};
}

std::unique_ptr<Strategy> AsynchronousOuter::make() const {
  return std::make_unique<AsynchronousOuterStrategy>(*this);
}

}  // namespace muster
