#include "muster/parallel/strategies/overlapped_averaging.h"

#include "muster/core/base/plural.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/outer_step.h"
#include "muster/parallel/strategies/periodic_strategy.h"

namespace muster {
namespace {

using Pull = OverlappedAveraging::Pull;

constexpr const char *kOverlapped = "overlapped averaging", *kSent = "sent";

/// The merged copy holds W.
class OverlappedAveragingStrategy final : public PeriodicStrategy<OverlappedAveraging> {
 public:
  using PeriodicStrategy::PeriodicStrategy;

  std::string describe() const override {
    const auto landing = pull_    ? fmt::format(", pull {}", pull_->strength)
                         : eager_ ? std::string(", eager")
                                  : std::string();
    return fmt::format("{} {}, delay {} ({}{}){}", kOverlapped, options_.frequency.describe(), options_.delay,
                       outer_.describe(), landing, muster::describe(options_.codec));
  }
  std::vector<StrategyBlock> blocks(int) const override {
    auto blocks = outer_.blocks(/*meanInFlight=*/options_.delay > 0);
    if (options_.delay > 0 && !pull_)
      blocks.push_back({.name = kSent, .place = StrategyBlock::Place::Replica, .inFlight = true});
    return withCommon(std::move(blocks), /*means=*/true);
  }
  StrategyTraits traits(int) const override {
    return {.updaterState = options_.updaterState,
            .replicasDiffer = options_.delay > 0 || pull_,
            .mayThrow = false};
  }
  void start(MergeOps& ops) override {
    if (outer_.ahead() > 0) outer_.writeBack(0, all_, ops);
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    if (!progress.inFlight.empty()) {
      period_.passRound(progress);
      return {.iterations = options_.delay, .launch = FragmentSet::none()};
    }
    const std::int64_t period = period_.iterations(progress);
    if (options_.delay == 0 || period <= options_.delay) return {.iterations = period};
    return {.iterations = period - options_.delay, .land = FragmentSet::none()};
  }
  void launch(int, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    // A landing as in Delta takes from a replica all that was sent.
    const double taken = pull_ ? pull_->strength : 1;
    outer_.takeMean(sending_, round.weights, taken, all_, ops, !round.landsAtOnce);
    if (round.landsAtOnce || pull_) return;  // kSent is not used then
    if (eager_) stepEagerly(ops);
    ops.combine(ops.own(kSent), {{1, parameters.replicas}}, all_);
  }
  void land(int, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const std::span<const Tensor> replicas = parameters.replicas, base = parameters.mergedCopies;
    outer_.apply(all_, ops);
    const auto lookAhead = outer_.lookAhead(ops);
    if (pull_) {
      outer_.writeBack(1 - pull_->strength, all_, ops);
    } else if (round.launched == round.iteration) {  // nothing was trained since the launch: exact copies
      outer_.writeBack(0, all_, ops);
    } else if (ops.participants() == 1) {  // mean and kSent are equal, and cancel exactly
      ops.combine(replicas, {{1, base}, {-1, ops.own(kSent)}, {outer_.ahead(), lookAhead}, {1, replicas}},
                  all_);
    } else {  // a worker that has not trained since the launch gets the base exactly
      ops.combine(replicas, {{1, replicas}, {-1, ops.own(kSent)}, {1, base}, {outer_.ahead(), lookAhead}},
                  all_);
    }
    ops.mergeOthers(round.weights);
  }

 private:
  /// Takes the outer step from W and D with x instead of the mean and the rate divided by the workers,
  /// written so that rate 1 without momentum and with one worker changes nothing.
  void stepEagerly(MergeOps& ops) const {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const double ahead = outer_.ahead();
    const double rate = outer_.rate / ops.participants() * (1 + ahead);
    const double momentum = outer_.momentum * (1 + ahead) - rate * ahead;
    ops.combine(
        parameters.replicas,
        {{rate, parameters.replicas}, {1 - rate, parameters.mergedCopies}, {momentum, outer_.lookAhead(ops)}},
        all_);
  }

  const OuterStep outer_ = OuterStep::of(options_);
  const Pull* const pull_ = std::get_if<Pull>(&options_.landing);  // null: another landing
  const bool eager_ = std::holds_alternative<OverlappedAveraging::Eager>(options_.landing);
};

}  // namespace

OverlappedAveraging OverlappedAveraging::overlapLocalSgd() {
  return {.landing = Pull{.strength = 0.6}, .momentum = 0.7};
}

OverlappedAveraging OverlappedAveraging::eagerDiloco() {
  return {.frequency = 500,
          .delay = 50,
          .landing = OverlappedAveraging::Eager{},
          .rate = 0.7,
          .momentum = 0.9,
          .nesterov = true,
          .updaterState = UpdaterState::Keep};
}

void OverlappedAveraging::validate() const {
  detail::validateParts(*this, kOverlapped);
  require(delay >= 0, "{}: delay cannot be negative, got {}", kOverlapped, delay);
  require(delay < frequency.every, "{}: delay must be shorter than the period of {}, got {}", kOverlapped,
          plural(frequency.every, "iteration"), delay);
  if (const auto* pull = std::get_if<Pull>(&landing))
    require(pull->strength >= 0 && pull->strength <= 1, "{}: strength must be in [0, 1], got {}", kOverlapped,
            pull->strength);
  OuterStep::of(*this).validate(kOverlapped);
}

std::unique_ptr<Strategy> OverlappedAveraging::make() const {
  return std::make_unique<OverlappedAveragingStrategy>(*this);
}

void OverlappedAveraging::fields(Fields& f) {
  frequency.fields(f);
  f.field("delay", delay, "iterations from launch to landing, less than the period; 0: lands at once",
          "[0, )");
  f.describe("what a merge does to replicas when it lands: delta, pull (with landing.strength) or eager");
  detail::variantField(f, "landing", landing, {"delta", "pull", "eager"}, [](Fields& inside, auto& chosen) {
    if constexpr (requires { chosen.strength; })
      inside.field("strength", chosen.strength, "how far a replica is pulled, from 0 to 1", "[0, 1]");
  });
  f.field("rate", rate, "outer learning rate, above 0", "(0, )");
  f.field("momentum", momentum, "outer momentum, from 0 to below 1", "[0, 1)");
  f.field("nesterov", nesterov, "the base is the look-ahead point");
  f.field("updaterState", updaterState, detail::kUpdaterStateField);
  codecFields(f, codec);
}

std::vector<NamedStrategy> OverlappedAveraging::named(int) {
  return {{"overlapped", "a merge lands `delay` iterations after its launch (landing: delta, pull or eager)",
           "Shen et al. 2019", OverlappedAveraging{}},
          {"overlap-local-sgd", "late merges that pull the replicas to an anchor", "Wang et al. 2020",
           overlapLocalSgd()},
          {"eager-diloco", "DiLoCo whose merges land late, with each worker's own part at once",
           "Kale et al. 2025", eagerDiloco()}};
}

}  // namespace muster
