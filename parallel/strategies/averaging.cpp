#include "muster/parallel/strategies/averaging.h"

#include "muster/core/base/error.h"

namespace muster {

PeriodicAveraging::PeriodicAveraging(std::int64_t frequency, std::int64_t synchronousUntil,
                                     bool measureDivergence)
    : frequency_(frequency), synchronousUntil_(synchronousUntil), measureDivergence_(measureDivergence) {
  require(frequency >= 1, "averagingFrequency must be at least 1, got {}", frequency);
  require(synchronousUntil >= 0, "synchronousUntil cannot be negative, got {}", synchronousUntil);
}

void PeriodicAveraging::begin(const Exchange& exchange) {
  if (measureDivergence_) exchange.block(BlockKind::Parameters);  // throws where there is none
  spreads_.resize(exchange.participants());
}

std::int64_t PeriodicAveraging::iterationsUntilMeeting(const MeetingInfo& info) {
  return info.iteration < synchronousUntil_ ? 1 : frequency_;
}

bool PeriodicAveraging::stage(Exchange& exchange, Context& context) {
  return !measureDivergence_ && exchange.stage(context);
}

std::int64_t PeriodicAveraging::meet(int participant, const Round& round, Exchange& exchange,
                                     Context& context) {
  return exchange.mergeState(participant, round.weights, context,
                             measureDivergence_ ? &spreads_[participant] : nullptr);
}

double PeriodicAveraging::divergence() const {
  return relativeDistance(spreads_);
}

std::string PeriodicAveraging::describe() const {
  const auto every =
      frequency_ == 1 ? std::string("every iteration") : fmt::format("every {} iterations", frequency_);
  if (synchronousUntil_ == 0 || frequency_ == 1) return "averaging " + every;
  return fmt::format("averaging every iteration up to iteration {}, then {}", synchronousUntil_, every);
}

}  // namespace muster
