#include <string>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/option_fields.h"
#include "muster/parallel/strategies/shared_gradients.h"

namespace muster {
namespace {

constexpr double kMostClipping = 1e6;  // in thresholds

}  // namespace

void SharedGradients::validate() const {
  muster::validate(thresholdAlgorithm);
  muster::validate(updaterState);
  require(residualClipping == 0 || (residualClipping >= 1 && residualClipping <= kMostClipping),
          "residualClipping must be 0 (off) or between 1 and {} thresholds, got {}", kMostClipping,
          residualClipping);
  require(residualClippingFrequency >= 1, "residualClippingFrequency must be at least 1, got {}",
          residualClippingFrequency);
  require(resynchronizationFrequency >= 0, "resynchronizationFrequency cannot be negative, got {}",
          resynchronizationFrequency);
}

std::string SharedGradients::describe() const {
  return muster::describe(thresholdAlgorithm);
}

void SharedGradients::fields(Fields& f) {
  field("threshold", thresholdAlgorithm, f);
  f.field("residualClipping", residualClipping, "clips what was not sent to so many thresholds; 0: never");
  f.field("residualClippingFrequency", residualClippingFrequency, "messages between clippings");
  f.field("resynchronizationFrequency", resynchronizationFrequency,
          "iterations between merges of all that was not sent; 0: at the end of each epoch only");
  f.field("updaterState", updaterState, detail::kUpdaterStateField);
}

std::vector<NamedStrategy> SharedGradients::named(int) {
  return {{"shared", "every iteration each worker sends the large elements of its update", "Strom 2015",
           SharedGradients{}}};
}

}  // namespace muster
