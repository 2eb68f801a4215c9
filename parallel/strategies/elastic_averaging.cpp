#include "muster/parallel/strategies/elastic_averaging.h"

#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/outer_step.h"
#include "muster/parallel/strategies/periodic_strategy.h"

namespace muster {
namespace {

/// The merged copy holds the centre.
class ElasticAveragingStrategy final : public PeriodicStrategy<ElasticAveraging> {
 public:
  explicit ElasticAveragingStrategy(const ElasticAveraging& options)
      : PeriodicStrategy(options, options.measureDistance ? "distance to the centre" : "") {}

  std::string describe() const override {
    return fmt::format("elastic averaging {} (centre rate {}, elasticity {}{}){}",
                       options_.frequency.describe(), options_.centreRate,
                       options_.elasticity ? fmt::format("{}", *options_.elasticity)
                                           : fmt::format("{} / workers", options_.centreRate),
                       options_.centreFirst ? ", centre first" : "", muster::describe(options_.codec));
  }
  std::vector<StrategyBlock> blocks(int) const override {
    return withCommon(centre_.blocks(/*meanInFlight=*/false), /*means=*/true);
  }
  StrategyTraits traits(int) const override {
    return {.updaterState = options_.updaterState, .extrapolates = !sending_.whole(), .mayThrow = false};
  }
  void begin(const Exchange& exchange) override {
    PeriodicStrategy::begin(exchange);
    elasticity_ = options_.elasticity.value_or(options_.centreRate / exchange.participants());
  }
  void land(int, const Round& round, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    if (measures()) spread(ops) = ops.distance(parameters.replicas, parameters.mergedCopies, all_);
    centre_.takeMean(sending_, round.weights, elasticity_, all_, ops);
    if (!options_.centreFirst) centre_.writeBack(1 - elasticity_, all_, ops);
    centre_.apply(all_, ops);
    if (options_.centreFirst) centre_.writeBack(1 - elasticity_, all_, ops);
    ops.mergeOthers(round.weights);
  }

 private:
  const OuterStep centre_{.rate = options_.centreRate};
  double elasticity_ = 0;
};

}  // namespace

ElasticAveraging ElasticAveraging::sma(double elasticity) {
  return {.frequency = 1, .centreRate = 1, .elasticity = elasticity, .centreFirst = true};
}

void ElasticAveraging::validate() const {
  detail::validateParts(*this, "elastic averaging");
  require(centreRate >= 0 && centreRate <= 1, "elastic averaging: centreRate must be in [0, 1], got {}",
          centreRate);
  require(!elasticity || (*elasticity >= 0 && *elasticity <= 1),
          "elastic averaging: elasticity must be in [0, 1], got {}", elasticity.value_or(0));
}

std::unique_ptr<Strategy> ElasticAveraging::make() const {
  return std::make_unique<ElasticAveragingStrategy>(*this);
}

void ElasticAveraging::fields(Fields& f) {
  frequency.fields(f);
  f.field("centreRate", centreRate, "how far the centre moves to the mean of the replicas, from 0 to 1",
          "[0, 1]");
  f.describe("how far replicas are pulled to the centre, from 0 to 1; none: centreRate / workers", "[0, 1]");
  detail::optionalField(f, "elasticity", elasticity);
  f.field("centreFirst", centreFirst, "replicas are pulled to the new centre, not to the old one");
  f.field("updaterState", updaterState, detail::kUpdaterStateField);
  codecFields(f, codec);
  f.field("measureDistance", measureDistance,
          "reports before each merge how far replicas are from the centre; costs one pass");
}

std::vector<NamedStrategy> ElasticAveraging::named(int) {
  return {
      {"easgd", "elastic averaging; elasticity none: centreRate / workers; EAMSGD with the updater nesterovs",
       "Zhang et al. 2015", ElasticAveraging{}},
      {"sma", "every iteration the replicas move towards their mean", "Koliousis et al. 2019", sma()}};
}

}  // namespace muster
