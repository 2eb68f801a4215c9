#include "muster/parallel/strategies/asynchronous_outer.h"

#include <algorithm>
#include <array>
#include <span>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/ops/linear_combination.h"

namespace muster {
namespace {

constexpr std::string_view kRule = "asynchronous outer";

constexpr std::string_view kArrived = "arrived since the outer step", kTaken = "taken",
                           kMeanTaken = "mean of what was taken", kLanding = "last landing";
/// Numbers of block kLanding: arrivals since the last outer step, and whether some worker did not continue.
enum { kSinceStep, kApart, kArrivalNumbers };

/// The merged copy holds W.
class AsynchronousOuterStrategy final : public Strategy {
 public:
  explicit AsynchronousOuterStrategy(const AsynchronousOuter& options)
      : options_(options), step_(OuterStep::of(options)), sending_(options.codec) {}

  std::string describe() const override {
    const bool wall = options_.clock == ArrivalClock::Wall;
    return fmt::format("asynchronous outer steps, an arrival {} ({}){}{}", options_.frequency.describe(),
                       step_.describe(), muster::describe(options_.codec),
                       wall ? ", on the wall clock: a run cannot be repeated" : "");
  }
  std::vector<StrategyBlock> blocks(int workers) const override {
    arrivals(workers);  // throws if the options do not fit this number of workers
    std::vector<StrategyBlock> all = {
        {.name = std::string(kTaken), .place = StrategyBlock::Place::Replica, .inFlight = true},
        {.name = std::string(kLanding),
         .place = StrategyBlock::Place::Replica,
         .numbers = kArrivalNumbers,
         .counts = true,
         .inFlight = true},
        {.name = std::string(kOuterMean), .dtype = DType::Float64, .saved = false},
        {.name = std::string(kMeanTaken), .dtype = DType::Float64, .saved = false}};
    if (options_.momentum > 0) {
      all.push_back({.name = std::string(kOuterMomentum)});
      all.push_back({.name = std::string(kArrived), .inFlight = true});
    }
    sending_.declare(all);
    return all;
  }
  StrategyTraits traits(int workers) const override {
    return {.updaterState = options_.updaterState, .arrivals = arrivals(workers), .mayThrow = false};
  }
  void begin(const Exchange& exchange) override {
    all_ = Fragment::whole(exchange.block(BlockKind::Parameters).mergedCopy().elements());
    workers_ = exchange.participants();
    perStep_ = options_.arrivalsPerStep > 0 ? options_.arrivalsPerStep : workers_;
    sending_.begin(exchange, std::span(&all_, 1));
    memory_ = exchange.strategyBlock(kLanding).values.front();
    arrivedBefore_ = sinceStep();
  }
  void start(MergeOps& ops) override {
    take(ops, [](std::size_t) { return true; });
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    arrivedBefore_ = memory_.defined() ? sinceStep() : 0;
    const std::int64_t iterations =
        memory_.defined() ? options_.frequency.at(progress) : options_.frequency.every;
    values_[2].value = static_cast<double>(iterations);
    return {.iterations = iterations};
  }
  void land(int, const Round& round, MergeOps& ops) override {
    const Landing now = landing(round);
    move(now, round, ops);
    take(ops, [&](std::size_t worker) { return round.arrivals[worker].resumes; });
    mergeOthers(now, round, ops);
    if (ops.participant() != 0) return;
    memory_.data<double>()[kSinceStep] = static_cast<double>(now.arrived);
    memory_.data<double>()[kApart] = now.apart ? 1 : 0;
    values_[0].value = static_cast<double>(now.arrivals);
    values_[1].value = static_cast<double>(now.staleness);
  }
  /// At the end of an epoch the outer step is completed, and all workers take W.
  bool pending() const override {
    return memory_.data<double>()[kApart] != 0 || (options_.momentum > 0 && sinceStep() > 0);
  }
  MergeReport report() const override { return {.values = values_}; }

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
  std::int64_t sinceStep() const { return static_cast<std::int64_t>(memory_.data<double>()[kSinceStep]); }
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
    const auto mean = ops.own(kOuterMean), meanTaken = ops.own(kMeanTaken);
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
    const auto momentum = ops.own(kOuterMomentum), arrived = ops.own(kArrived);
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
    const bool together = now.arrivals == workers_ || round.last;
    for (const SharedBlock& block : ops.blocks()) {
      if ((block.kind != BlockKind::UpdaterState && block.kind != BlockKind::Statistics) ||
          block.rule == MergeRule::Keep || now.arrivals == 0)
        continue;
      if (together) {
        ops.merge(block, round.weights);
        continue;
      }
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
  /// Sets the replicas of workers that continue to their start point. @param resumes  `bool resumes(worker)`
  template <typename Resumes>
  void take(MergeOps& ops, Resumes resumes) const {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const auto momentum = step_.lookAhead(ops), taken = ops.own(kTaken);
    ops.eachShare(parameters.mergedCopy().elements(), [&](const Share& share) {
      const auto [begin, end] = share.slice;
      for (const std::size_t w : share.workers) {
        if (!resumes(w)) continue;
        const Tensor& replica = parameters.replicas[w];
        linearCombination(std::array{Term{1, parameters.mergedCopies[w]}, Term{step_.ahead(), momentum[w]}},
                          replica, begin, end, share.context);
        linearCombination(std::array{Term{1, replica}}, taken[w], begin, end, share.context);
      }
    });
  }

  const AsynchronousOuter options_;
  const OuterStep step_;
  Fragment all_;
  CodedReplicas sending_;
  std::int64_t workers_ = 1, perStep_ = 1;
  std::int64_t arrivedBefore_ = 0;  // since the last outer step; written between landings
  Tensor memory_;                   // the first worker's block kLanding; written by the first participant
  std::array<MergeValue, 3> values_{{{"arrivals", 0}, {"staleness", 0}, {"period", 0}}};  // like memory_
};

}  // namespace

std::unique_ptr<Strategy> AsynchronousOuter::make() const {
  return std::make_unique<AsynchronousOuterStrategy>(*this);
}

}  // namespace muster
