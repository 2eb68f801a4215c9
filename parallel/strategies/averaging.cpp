#include "muster/parallel/strategies/averaging.h"

#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/outer_averaging.h"

namespace muster {
namespace {

class AveragingStrategy final : public Strategy {
 public:
  explicit AveragingStrategy(const Averaging& options) : options_(options), period_(options.frequency) {}

  std::string describe() const override { return "averaging " + options_.frequency.describe(); }
  std::vector<StrategyBlock> blocks(int) const override {
    std::vector<StrategyBlock> blocks;
    period_.declare(blocks);
    return blocks;
  }
  StrategyTraits traits(int) const override {
    return {.updaterState = options_.updaterState,
            .replicasDiffer = false,
            .extrapolates = false,
            .mayThrow = false,
            .mergesBeforeScores = !options_.measureDivergence};
  }
  void begin(const Exchange& exchange) override {
    period_.begin(exchange);
    if (options_.measureDivergence) exchange.block(BlockKind::Parameters);  // throws if there is none
    measuresIfRead_ = !exchange.topology().guardsMerges;
    spreads_.resize(static_cast<std::size_t>(exchange.participants()));
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    return {.iterations = period_.iterations(progress)};
  }
  void land(int, const Round& round, MergeOps& ops) override {
    auto& spread = spreads_[static_cast<std::size_t>(ops.participant())];
    spread = {};
    const bool measure = options_.measureDivergence || (measuresIfRead_ && round.measured);
    ops.mergeState(round.weights, measure ? &spread : nullptr);
  }
  MergeReport report() const override {
    return {.divergence = relativeDistance(spreads_), .values = period_.values()};
  }

 private:
  const Averaging options_;
  PeriodState period_;
  std::vector<Spread> spreads_;  // [worker] for its slice of the parameters
  bool measuresIfRead_ = false;
};

}  // namespace

void Averaging::validate() const {
  detail::validateParts(*this, "averaging");
  require(!measureDivergence || sendsWhole(codec),
          "averaging: measureDivergence cannot be given with a codec");
}

std::unique_ptr<Strategy> Averaging::make() const {
  if (!sendsWhole(codec))
    return OuterAveraging{.frequency = frequency, .updaterState = updaterState, .codec = codec}.make();
  return std::make_unique<AveragingStrategy>(*this);
}

void Averaging::fields(Fields& f) {
  frequency.fields(f);
  f.field("updaterState", updaterState, detail::kUpdaterStateField);
  f.field("measureDivergence", measureDivergence,
          "reports before each merge how far the replicas are apart; costs one pass");
  codecFields(f, codec);
}

std::vector<NamedStrategy> Averaging::named(int) {
  return {{"averaging", "all state becomes the mean of the replicas", "McDonald et al. 2010, Stich 2019",
           Averaging{}}};
}

}  // namespace muster
