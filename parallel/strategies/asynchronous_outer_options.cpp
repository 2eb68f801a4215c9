#include <utility>
#include <variant>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/asynchronous_outer.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"

namespace muster {
namespace {

constexpr double kMostSpeed = 1e6;
constexpr std::string_view kAsynchronousOuter = "asynchronous outer";

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
  detail::validateParts(*this, kAsynchronousOuter);
  require(!std::holds_alternative<AdaComm>(frequency.adapted),
          "{}: period cannot be AdaComm, since batches are dealt before there are scores to adapt to",
          kAsynchronousOuter);
  OuterStep::of(*this).validate(kAsynchronousOuter);
  require(arrivalsPerStep >= 0, "{}: arrivalsPerStep cannot be negative, got {}", kAsynchronousOuter,
          arrivalsPerStep);
  require(clock == ArrivalClock::Virtual || clock == ArrivalClock::Wall, "{}: there is no clock {}",
          kAsynchronousOuter, static_cast<int>(clock));
  for (const double speed : speeds)
    require(speed >= 1 / kMostSpeed && speed <= kMostSpeed, "{}: speeds must be between {} and {}, got {}",
            kAsynchronousOuter, 1 / kMostSpeed, kMostSpeed, speed);
  require(staleness.value_or(0) >= 0, "{}: staleness cannot be negative, got {}", kAsynchronousOuter,
          staleness.value_or(0));
  require(grace >= 0, "{}: grace must be at least 0, got {}", kAsynchronousOuter, grace);
  if (clock == ArrivalClock::Wall) {
    require(grace == 0, "{}: grace is virtual time, so on the wall clock it must be 0, got {}",
            kAsynchronousOuter, grace);
    require(speeds.empty() || fewerIterationsIfSlow,
            "{}: speeds only count for fewerIterationsIfSlow on the wall clock; give that, too, or no speeds",
            kAsynchronousOuter);
  }
  require(updaterState != UpdaterState::Average,
          "{}: updaterState cannot be Average, since workers are merged one by one; use Keep or Reset",
          kAsynchronousOuter);
}

void AsynchronousOuter::fields(Fields& f) {
  frequency.fields(f);
  f.field("rate", rate, "outer learning rate, above 0");
  f.field("momentum", momentum, "outer momentum, from 0 to below 1");
  f.field("nesterov", nesterov, "workers continue from the look-ahead point");
  f.field("arrivalsPerStep", arrivalsPerStep, "arrivals in an outer step; 0: the number of workers");
  f.field("clock", clock,
          "virtual: arrivals by declared speeds, the same bits in every run; wall: as workers really arrive");
  f.describe("how fast each worker is, as in 1,0.5; equal: all are equally fast");
  detail::listField(f, "speeds", speeds, "equal");
  f.field("fewerIterationsIfSlow", fewerIterationsIfSlow,
          "a slower worker has fewer iterations between arrivals");
  f.describe("arrivals by which a worker may be ahead of another; none: any number");
  detail::optionalField(f, "staleness", staleness);
  f.field("grace", grace,
          "arrivals within this time after the first one are merged together; 0: each by itself");
  f.field("updaterState", updaterState,
          "what an arrival does with the worker's updater state: keep or reset");
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
