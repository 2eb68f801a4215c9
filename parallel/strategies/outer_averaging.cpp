#include "muster/parallel/strategies/outer_averaging.h"

#include <algorithm>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/outer_step.h"
#include "muster/parallel/strategies/periodic_strategy.h"

namespace muster {
namespace {

constexpr std::string_view kBefore = "outer parameters before the step", kRate = "followed learning rate";
constexpr std::int64_t kPart = 4096;  // elements
/// Numbers of block kRate, for the round in progress: the iteration before its first step, the learning rate
/// then, and the factor of the momentum.
enum { kIteration, kLearningRate, kScale, kRateNumbers };

class OuterAveragingStrategy final : public PeriodicStrategy {
 public:
  explicit OuterAveragingStrategy(const OuterAveraging& options)
      : PeriodicStrategy(options, options.measureStep ? "outer step" : ""),
        options_(options),
        step_(OuterStep::of(options)) {}

  std::string describe() const override {
    return fmt::format("outer averaging {} ({}){}", options_.frequency.describe(), step_.describe(),
                       muster::describe(options_.codec));
  }
  std::vector<StrategyBlock> blocks(int) const override {
    std::vector<StrategyBlock> blocks;
    step_.declare(blocks, /*meanInFlight=*/false);
    if (options_.measureStep) blocks.push_back({.name = std::string(kBefore), .saved = false});
    sending_.declare(blocks, /*means=*/true);
    if (options_.followLearningRate)
      blocks.push_back(
          {.name = std::string(kRate), .place = StrategyBlock::Place::Replica, .numbers = kRateNumbers});
    period_.declare(blocks);
    return blocks;
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
    const double scale = options_.followLearningRate ? followed() : 1;
    const auto step = [&](const Fragment& part) {
      step_.takeMean(sending_, round.weights, /*remember=*/1, part, ops);
      step_.apply(part, ops, scale);
      step_.writeBack(0, part, ops);
    };
    if (atOnce_)
      step_.takeAtOnce(round.weights, scale, ops);
    else if (inParts_)
      inParts(parts_[static_cast<std::size_t>(ops.participant())], step);
    else
      step(all_);
    if (measures()) spread(ops) = ops.distance(outer, ops.own(kBefore), all_);
    ops.mergeOthers(round.weights);
  }

 private:
  /// Calls `step` for parts so small that what its operations read and write of a part stays in the caches.
  template <typename Step>
  void inParts(Fragment& part, Step step) const {
    const auto [begin, end] = all_.slices.front();
    for (std::int64_t at = begin; at < end; at += kPart) {
      part.slices.front() = {at, std::min(end, at + kPart)};
      step(part);
    }
  }
  double followed() const {
    const auto* const memory = memory_.data<double>();
    return memory[kLearningRate] > 0 ? memory[kScale] : 1;  // 1: resumed from a rule without it
  }
  void follow(const TrainingProgress& progress) {
    auto* const memory = memory_.data<double>();
    const auto now = static_cast<double>(progress.iteration);
    const bool begun = memory[kLearningRate] > 0;
    if (begun && now == memory[kIteration]) return;  // after a round without batches, or a new `fit()`
    const double before = begun ? memory[kLearningRate] : progress.learningRate;
    memory[kIteration] = now;
    memory[kLearningRate] = progress.learningRate;
    memory[kScale] = before > 0 ? progress.learningRate / before : 1;
  }

  const OuterAveraging options_;
  const OuterStep step_;
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
  f.field("rate", rate, "outer learning rate: factor of the mean change, above 0");
  f.field("momentum", momentum, "outer momentum, from 0 to below 1");
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
