#include <doctest/doctest.h>

#include <cmath>

#include "muster/parallel/strategies/shared_gradients.h"

using namespace muster;

namespace {

/// A sender's threshold, adapted after each message.
struct Threshold {
  explicit Threshold(const ThresholdAlgorithm& algorithm)
      : rule(detail::asAdaptive(algorithm)), now(rule.initial) {}
  void adapt(double density) { now = detail::adaptedThreshold(rule, now, density); }

  AdaptiveThreshold rule;
  double now;
};

}  // namespace

TEST_CASE("a fixed threshold stays, and an adaptive one moves while the density is out of its range") {
  Threshold fixed(FixedThreshold{.threshold = 0.25});
  for (const double density : {0.0, 0.5, 1.0}) fixed.adapt(density);
  CHECK(fixed.now == 0.25f);

  Threshold adaptive(AdaptiveThreshold{.initial = 1, .minDensity = 0.1, .maxDensity = 0.2, .decay = 0.5});
  adaptive.adapt(0.1);
  adaptive.adapt(0.2);
  CHECK(adaptive.now == 1);
  adaptive.adapt(0.09);
  CHECK(adaptive.now == 0.5f);
  adaptive.adapt(0.21);
  adaptive.adapt(0.21);
  CHECK(adaptive.now == 2);

  Threshold target(TargetDensityThreshold{.initial = 1, .density = 0.1, .decay = 0.5});
  target.adapt(0.05);
  CHECK(target.now == 0.5f);
  target.adapt(0.1);
  CHECK(target.now == 0.5f);
  target.adapt(0.11);
  CHECK(target.now == 1);
}

TEST_CASE("the default decay halves the threshold within 20 messages") {
  Threshold rule(AdaptiveThreshold{.initial = 1, .minDensity = 0.5, .maxDensity = 0.5});
  for (int i = 0; i < 20; ++i) rule.adapt(0);
  CHECK(rule.now == doctest::Approx(0.5).epsilon(1e-12));
}

TEST_CASE("a threshold stays within the range of float32") {
  Threshold rule(AdaptiveThreshold{.initial = 1, .minDensity = 0.5, .maxDensity = 0.5, .decay = 1e-20});
  for (int i = 0; i < 10; ++i) rule.adapt(0);
  CHECK(rule.now > 0);
  for (int i = 0; i < 10; ++i) rule.adapt(1);
  CHECK(std::isfinite(rule.now));
}
