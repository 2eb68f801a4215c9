#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "muster/parallel/strategies/coded_replicas.h"
#include "muster/parallel/strategies/period.h"

namespace muster {

/// What rules have in common whose replicas send all their parameters when a period ends.
template <typename Options>
class PeriodicStrategy : public Strategy {
 public:
  /// @param measured  name of the number that listeners get in addition to the period; "": none.
  explicit PeriodicStrategy(const Options& options, std::string_view measured = {})
      : options_(options),
        period_(options.frequency),
        sending_(options.codec),
        values_{{{}, {measured, 0}}} {}

  void begin(const Exchange& exchange) override {
    period_.begin(exchange);
    all_ = Fragment::whole(exchange.block(BlockKind::Parameters).mergedCopy().elements());
    sending_.begin(exchange, std::span(&all_, 1));
    spreads_.assign(static_cast<std::size_t>(exchange.participants()), {});
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    return {.iterations = period_.iterations(progress)};
  }
  MergeReport report() const override {
    values_[0] = period_.value();
    if (values_[1].name.empty()) return {.values = std::span(values_).first(1)};
    values_[1].value = measured();
    return {.values = values_};
  }

 protected:
  /// The rule's own blocks, and those of codec and period. @param means  see CodedReplicas::declare.
  std::vector<StrategyBlock> withCommon(std::vector<StrategyBlock> own, bool means) const {
    sending_.declare(own, means);
    period_.declare(own);
    return own;
  }
  bool measures() const { return !values_[1].name.empty(); }
  /// The number for listeners.
  virtual double measured() const { return relativeDistance(spreads_); }
  /// The participant's share of the distance.
  Spread& spread(const MergeOps& ops) { return spreads_[static_cast<std::size_t>(ops.participant())]; }

  const Options options_;
  PeriodState period_;
  CodedReplicas sending_;
  Fragment all_;  // of the parameters

 private:
  std::vector<Spread> spreads_;  // [participant]
  mutable std::array<MergeValue, 2> values_;
};

}  // namespace muster
