#include "muster/parallel/strategies/outer_averaging.h"

#include <algorithm>

#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/outer_step.h"
#include "muster/parallel/strategies/periodic_strategy.h"
#include "muster/parallel/strategies/saved_numbers.h"

namespace muster {
namespace {

constexpr const char *kBefore = "outer parameters before the step", *kRate = "followed learning rate";
constexpr std::int64_t kPart = 4096;  // elements

/// The numbers of block kRate, for the round in progress.
struct FollowedRate {
  double iteration = 0;     // before its first step
  double learningRate = 0;  // then; 0: not followed yet
  double scale = 0;         // factor of the momentum
};

class OuterAveragingStrategy final : public PeriodicStrategy<OuterAveraging> {
 public:
  explicit OuterAveragingStrategy(const OuterAveraging& options)
      : PeriodicStrategy(options, options.measureStep ? "outer step" : "") {}

  std::string describe() const override {
    return fmt::format("outer averaging {} ({}){}", options_.frequency.describe(), step_.describe(),
                       muster::describe(options_.codec));
  }
  std::vector<StrategyBlock> blocks(int) const override {
    auto blocks = step_.blocks(/*meanInFlight=*/false);
    if (options_.measureStep) blocks.push_back({.name = kBefore, .saved = false});
    if (options_.followLearningRate)
      blocks.push_back({.name = kRate,
                        .place = StrategyBlock::Place::Replica,
                        .numbers = detail::kNumbersOf<FollowedRate>});
    return withCommon(std::move(blocks), /*means=*/true);
  }
  StrategyTraits traits(int) const override {
    return {.updaterState = options_.updaterState, .replicasDiffer = false, .mayThrow = false};
  }
  void begin(const Exchange& exchange) override {
    PeriodicStrategy::begin(exchange);
    if (options_.followLearningRate) memory_ = exchange.strategyBlock(kRate).values.front();
    parts_.assign(static_cast<std::size_t>(exchange.participants()), Fragment::whole(0));
    atOnce_ = sending_.whole() && exchange.topology().oneSum;
    // Encoding needs whole replicas, and a GPU fewer kernels.
    inParts_ = sending_.whole() && exchange.topology().onePlace &&
               exchange.block(BlockKind::Parameters).mergedCopy().device().isCpu();
  }
  void start(MergeOps& ops) override { step_.writeBack(0, all_, ops); }
  RoundPlan plan(const TrainingProgress& progress) override {
    if (options_.followLearningRate && memory_.defined()) follow(progress);
    return PeriodicStrategy::plan(progress);
  }
  void land(int, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const std::span<const Tensor> outer = parameters.mergedCopies;
    if (options_.measureStep) ops.combine(ops.own(kBefore), {{1, outer}}, all_);
    const double scale = momentumScale();
    const auto step = [&](const Fragment& fragment) {
      step_.takeMean(sending_, round.weights, /*remember=*/1, fragment, ops);
      step_.apply(fragment, ops, scale);
      step_.writeBack(0, fragment, ops);
    };
    auto& part = parts_[static_cast<std::size_t>(ops.participant())];
    const std::int64_t end = all_.elements();
    if (atOnce_)
      step_.takeAtOnce(round.weights, scale, ops);
    else if (!inParts_)
      step(all_);
    else  // what the operations read and write of a part stays in the caches
      for (std::int64_t at = 0; at < end; at += kPart) {
        part.slices.front() = {at, std::min(end, at + kPart)};
        step(part);
      }
    if (measures()) spread(ops) = ops.distance(outer, ops.own(kBefore), all_);
    ops.mergeOthers(round.weights);
  }

 private:
  double momentumScale() const {
    if (!options_.followLearningRate) return 1;
    const auto& rate = detail::numbersOf<FollowedRate>(memory_);
    return rate.learningRate > 0 ? rate.scale : 1;  // 1: resumed from a rule without it
  }
  void follow(const TrainingProgress& progress) {
    auto& rate = detail::numbersOf<FollowedRate>(memory_);
    const auto now = static_cast<double>(progress.iteration);
    const bool begun = rate.learningRate > 0;
    if (begun && now == rate.iteration) return;  // after a round without batches, or a new `fit()`
    const double before = begun ? rate.learningRate : progress.learningRate;
    rate = {now, progress.learningRate, before > 0 ? progress.learningRate / before : 1};
  }

  const OuterStep step_ = OuterStep::of(options_);
  std::vector<Fragment> parts_;  // [participant] its current part
  bool inParts_ = false;         // the operations are called part by part
  bool atOnce_ = false;          // mean, step and write-back are one pass
  Tensor memory_;                // the first worker's block kRate; written between rounds
};

}  // namespace

OuterAveraging OuterAveraging::bmuf(int workers, bool nesterov) {
  require(workers >= 1, "bmuf: workers must be at least 1, got {}", workers);
  return {.frequency = 50,
          .momentum = 1 - 1.0 / workers,
          .nesterov = nesterov,
          .updaterState = UpdaterState::Reset};
}

OuterAveraging OuterAveraging::slowMo(double momentum) {
  return {
      .frequency = 48, .momentum = momentum, .followLearningRate = true, .updaterState = UpdaterState::Keep};
}

OuterAveraging OuterAveraging::diloco() {
  return {
      .frequency = 500, .rate = 0.7, .momentum = 0.9, .nesterov = true, .updaterState = UpdaterState::Keep};
}

OuterAveraging OuterAveraging::lookahead() {
  return {.frequency = 5, .rate = 0.8, .updaterState = UpdaterState::Keep};
}

void OuterAveraging::validate() const {
  detail::validateParts(*this, "outer averaging");
  OuterStep::of(*this).validate("outer averaging");
}

std::unique_ptr<Strategy> OuterAveraging::make() const {
  return std::make_unique<OuterAveragingStrategy>(*this);
}

void OuterAveraging::fields(Fields& f) {
  frequency.fields(f);
  f.field("rate", rate, "outer learning rate: factor of the mean change, above 0", "(0, )");
  f.field("momentum", momentum, "outer momentum, from 0 to below 1", "[0, 1)");
  f.field("nesterov", nesterov, "workers continue from the look-ahead point");
  f.field("followLearningRate", followLearningRate,
          "momentum follows changes of the inner learning rate, as in SlowMo");
  f.field("updaterState", updaterState, detail::kUpdaterStateField);
  codecFields(f, codec);
  f.field("measureStep", measureStep,
          "reports how far each outer step moved the parameters; costs two passes");
}

std::vector<NamedStrategy> OuterAveraging::named(int workers) {
  return {{"outer", "averaging with an outer optimiser", "Chen & Huo 2016", OuterAveraging{}},
          {"bmuf", "blockwise model update filtering", "Chen & Huo 2016", bmuf(workers)},
          {"bmuf-nesterov", "blockwise model update filtering from a look-ahead point", "Chen & Huo 2016",
           bmuf(workers, true)},
          {"slowmo", "slow momentum", "Wang et al. 2019", slowMo()},
          {"diloco", "rare merges with outer Nesterov momentum; its workers use AdamW",
           "Douillard et al. 2023", diloco()},
          {"lookahead", "part of the way to the mean", "Zhang et al. 2019", lookahead()}};
}

}  // namespace muster
