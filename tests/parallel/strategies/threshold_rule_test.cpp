#include "muster/parallel/strategies/threshold_rule.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace muster;

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
