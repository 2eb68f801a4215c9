#include "muster/parallel/strategies/outer_averaging.h"

#include <cmath>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace muster {
namespace {

constexpr std::string_view kMomentum = "outer momentum", kMean = "mean", kNext = "next outer parameters";

/// The merged copy holds W.
class OuterAveragingStrategy final : public Strategy {
 public:
  explicit OuterAveragingStrategy(const OuterAveraging& options)
      : options_(options), period_(options.frequency) {}

  std::string describe() const override {
    return fmt::format("outer averaging {} (rate {}, {}momentum {})", options_.frequency.describe(),
                       options_.rate, options_.nesterov ? "Nesterov " : "", options_.momentum);
  }
  std::vector<StrategyBlock> blocks(int) const override {
    std::vector<StrategyBlock> blocks = {
        {.name = std::string(kMomentum)},
        {.name = std::string(kMean), .dtype = DType::Float64, .saved = false},
        {.name = std::string(kNext), .saved = false}};
    period_.declare(blocks);
    return blocks;
  }
  UpdaterState updaterState() const override { return options_.updaterState; }
  void begin(const Exchange& exchange) override {
    period_.begin(exchange);
    all_ = Fragment::whole(exchange.block(BlockKind::Parameters).mergedCopy().elements());
  }
  void start(Verbs& verbs) override {
    if (options_.nesterov) lookAhead(verbs);
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    if (progress.rounds == 0 || progress.iteration != iteration_) {  // not after a round without batches
      const double before = progress.rounds == 0 ? progress.learningRate : learningRate_;
      learningRate_ = progress.learningRate;
      iteration_ = progress.iteration;
      scale_ = options_.followLearningRate && before > 0 ? learningRate_ / before : 1;
    }
    return {.iterations = period_.iterations(progress)};
  }
  void land(int, const Round& round, Verbs& verbs) override {
    const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
    const std::span<const Tensor> outer = parameters.mergedCopies;
    const auto momentum = verbs.own(kMomentum), mean = verbs.own(kMean), next = verbs.own(kNext);
    const double rate = options_.rate;
    // The mean's move is measured from where the workers started, which is W + momentum D with Nesterov.
    const double eta = options_.momentum * (options_.nesterov ? scale_ - rate : scale_);
    verbs.mean(parameters.replicas, round.weights, mean, all_);
    // Written so that rate 1 without momentum copies the mean: in another order it would be rounded twice.
    verbs.combine(next, {{rate, mean}, {1 - rate, outer}, {eta, momentum}}, all_);
    verbs.combine(momentum, {{eta, momentum}, {rate, mean}, {-rate, outer}}, all_);
    verbs.combine(outer, {{1, next}}, all_);
    options_.nesterov ? lookAhead(verbs) : verbs.writeBack(outer, parameters.replicas, 0, all_);
    verbs.mergeOthers(round.weights);
  }
  std::span<const MergeValue> values() const override { return period_.values(); }

 private:
  void lookAhead(Verbs& verbs) const {
    const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
    verbs.combine(parameters.replicas,
                  {{1, parameters.mergedCopies}, {options_.momentum, verbs.own(kMomentum)}}, all_);
  }

  const OuterAveraging options_;
  PeriodState period_;
  Fragment all_;
  double learningRate_ = 0, scale_ = 1;  // of the round in progress; written between rounds
  std::int64_t iteration_ = 0;           // likewise, before its first step
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
  frequency.validate("outer averaging: frequency");
  require(std::isfinite(rate) && rate > 0, "outer averaging: rate must be above 0, got {}", rate);
  require(momentum >= 0 && momentum < 1, "outer averaging: momentum must lie in [0, 1), got {}", momentum);
  muster::validate(updaterState);
}

std::unique_ptr<Strategy> OuterAveraging::make() const {
  return std::make_unique<OuterAveragingStrategy>(*this);
}

void OuterAveraging::fields(Fields& f) {
  frequency.fields(f);
  f.field("rate", rate);
  f.field("momentum", momentum);
  f.field("nesterov", nesterov);
  f.field("followLearningRate", followLearningRate);
  f.field("updaterState", updaterState);
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
