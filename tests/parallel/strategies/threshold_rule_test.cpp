#include "muster/parallel/strategies/threshold_rule.h"

#include <cmath>

#include "muster/parallel/strategies/shared_gradients.h"
#include "tests/support/thrown.h"

using namespace muster;
using muster::test::thrown;

TEST_CASE("a fixed threshold stays, and an adaptive one moves while the density is out of its range") {
  ThresholdRule fixed(FixedThreshold{.threshold = 0.25});
  for (const double density : {0.0, 0.5, 1.0}) fixed.adapt(density);
  CHECK(fixed.threshold() == 0.25f);

  ThresholdRule adaptive(AdaptiveThreshold{.initial = 1, .minDensity = 0.1, .maxDensity = 0.2, .decay = 0.5});
  adaptive.adapt(0.1);
  adaptive.adapt(0.2);
  CHECK(adaptive.threshold() == 1);
  adaptive.adapt(0.09);
  CHECK(adaptive.threshold() == 0.5f);
  adaptive.adapt(0.21);
  adaptive.adapt(0.21);
  CHECK(adaptive.threshold() == 2);

  ThresholdRule target(TargetDensityThreshold{.initial = 1, .density = 0.1, .decay = 0.5});
  target.adapt(0.05);
  CHECK(target.threshold() == 0.5f);
  target.adapt(0.1);
  CHECK(target.threshold() == 0.5f);
  target.adapt(0.11);
  CHECK(target.threshold() == 1);
}

TEST_CASE("the default decay halves the threshold within 20 messages") {
  ThresholdRule rule(AdaptiveThreshold{.initial = 1, .minDensity = 0.5, .maxDensity = 0.5});
  for (int i = 0; i < 20; ++i) rule.adapt(0);
  CHECK(rule.threshold() == doctest::Approx(0.5).epsilon(1e-12));
}

TEST_CASE("a threshold stays within the range of float32") {
  ThresholdRule rule(AdaptiveThreshold{.initial = 1, .minDensity = 0.5, .maxDensity = 0.5, .decay = 1e-20});
  for (int i = 0; i < 10; ++i) rule.adapt(0);
  CHECK(rule.threshold() > 0);
  for (int i = 0; i < 10; ++i) rule.adapt(1);
  CHECK(std::isfinite(rule.threshold()));
}

TEST_CASE("options out of range are refused by name") {
  const auto refusal = [](SharedGradients options) {
    return thrown<InvalidArgument>([&] { options.validate(); });
  };
  CHECK(refusal({.thresholdAlgorithm = FixedThreshold{.threshold = -0.5}}) ==
        "thresholdAlgorithm: threshold must be between 1e-30 and 1e+30, got -0.5");
  CHECK(refusal({.thresholdAlgorithm = FixedThreshold{.threshold = std::nan("")}}) ==
        "thresholdAlgorithm: threshold must be between 1e-30 and 1e+30, got nan");
  CHECK(refusal({.thresholdAlgorithm = AdaptiveThreshold{.initial = 0}}) ==
        "thresholdAlgorithm: initial must be between 1e-30 and 1e+30, got 0");
  CHECK(refusal({.thresholdAlgorithm = AdaptiveThreshold{.minDensity = 0.5, .maxDensity = 0.1}}) ==
        "thresholdAlgorithm: minDensity (0.5) is above maxDensity (0.1)");
  CHECK(refusal({.thresholdAlgorithm = AdaptiveThreshold{.maxDensity = 1.5}}) ==
        "thresholdAlgorithm: maxDensity must be above 0 and at most 1, got 1.5");
  CHECK(refusal({.thresholdAlgorithm = TargetDensityThreshold{.density = 0}}) ==
        "thresholdAlgorithm: density must be above 0 and at most 1, got 0");
  CHECK(refusal({.thresholdAlgorithm = TargetDensityThreshold{.decay = 1}}) ==
        "thresholdAlgorithm: decay must be between 0 and 1, got 1");
  CHECK(refusal({.residualClipping = 0.5}) ==
        "residualClipping must be 0 (off) or between 1 and 1000000 thresholds, got 0.5");
  CHECK(refusal({.residualClipping = 1e300}) ==
        "residualClipping must be 0 (off) or between 1 and 1000000 thresholds, got 1e+300");
  CHECK(refusal({.residualClippingFrequency = 0}) == "residualClippingFrequency must be at least 1, got 0");
  CHECK(refusal({.resynchronizationFrequency = -1}) ==
        "resynchronizationFrequency cannot be negative, got -1");
}
