#include <cmath>
#include <utility>
#include <variant>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/asynchronous_outer.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"

namespace muster {
namespace {

constexpr double kMostSpeed = 1e6;
constexpr std::string_view kRule = "asynchronous outer";

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
  frequency.validate("asynchronous outer");
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
  muster::validate(updaterState);
  require(updaterState != UpdaterState::Average,
          "{}: updaterState cannot be Average, since workers are merged one by one; use Keep or Reset",
          kRule);
  muster::validate(codec, kRule);
}

void AsynchronousOuter::fields(Fields& f) {
  frequency.fields(f);
  f.field("rate", rate);
  f.field("momentum", momentum);
  f.field("nesterov", nesterov);
  f.field("arrivalsPerStep", arrivalsPerStep);
  f.field("clock", clock);
  detail::listField(f, "speeds", speeds, "equal");
  f.field("fewerIterationsIfSlow", fewerIterationsIfSlow);
  detail::optionalField(f, "staleness", staleness);
  f.field("grace", grace);
  f.field("updaterState", updaterState);
  codecFields(f, codec);
}

std::vector<NamedStrategy> AsynchronousOuter::named(int) {
  return {
      {"asynchronous", "outer steps by arrivals, without rounds, by declared speeds or on the wall clock",
       "Liu et al. 2024", AsynchronousOuter{.frequency = 10}},
      {"delayed-nesterov", "outer steps by arrivals, with momentum at every N-th one; N is arrivalsPerStep",
       "Liu et al. 2024", delayedNesterov()}};
}

}  // namespace muster
