#include "muster/parallel/strategies/averaging.h"

#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "muster/parallel/exchange/exchange.h"
#include "tests/support/thrown.h"

using namespace muster;
using muster::test::thrown;

namespace {

/// Writes down what it is asked to merge.
class RecordingCollective final : public Exchange {
 public:
  RecordingCollective() : blocks_(3) {
    blocks_[2].name = "gradients";
    blocks_[2].kind = BlockKind::Gradients;
    blocks_[0].name = "parameters";
    blocks_[1].name = "velocity";
    blocks_[1].kind = BlockKind::UpdaterState;
  }
  int participants() const override { return 3; }
  std::span<const SharedBlock> blocks() const override { return blocks_; }
  std::int64_t merge(int participant, const SharedBlock& block, std::span<const double> weights, Context&,
                     Spread* spread) override {
    if (spread) *spread = {.distance = 1.0 + participant, .norm = 8};
    merged += fmt::format("{} {} {};", participant, block.name, weights[2]);
    return 100;
  }
  std::int64_t addEncoded(int, const SharedBlock&, std::span<const ThresholdMessage* const>,
                          std::span<const double>, Context&) override {
    return 0;
  }
  std::int64_t addDense(int, const SharedBlock&, std::span<const Tensor>, std::span<const double>, Context&,
                        Spread&) override {
    return 0;
  }
  std::string merged;

 private:
  std::vector<SharedBlock> blocks_;
};

}  // namespace

TEST_CASE("the period is always the frequency, which is at least 1") {
  PeriodicAveraging strategy(3);
  CHECK(strategy.iterationsUntilMeeting({}) == 3);
  CHECK(strategy.iterationsUntilMeeting({.epoch = 4, .iteration = 17, .meetings = 6, .score = 0.5}) == 3);
  CHECK(strategy.reproducible());
  CHECK(strategy.describe() == "averaging every 3 iterations");
  CHECK(PeriodicAveraging(1).describe() == "averaging every iteration");
  CHECK(thrown<InvalidArgument>([] { PeriodicAveraging(0); }) ==
        "averagingFrequency must be at least 1, got 0");
}

TEST_CASE("at a meeting each block is merged, with the weights as they are") {
  PeriodicAveraging strategy(1);
  RecordingCollective exchange;
  Context context;
  const std::vector<double> weights = {1, 0, 2.5};
  CHECK(strategy.meet(2, {.weights = weights}, exchange, context) == 200);
  CHECK(exchange.merged == "2 parameters 2.5;2 velocity 2.5;");
}

TEST_CASE("post-local: every iteration until one, then at the frequency") {
  PeriodicAveraging strategy(8, 100);
  CHECK(strategy.iterationsUntilMeeting({.iteration = 0}) == 1);
  CHECK(strategy.iterationsUntilMeeting({.iteration = 99}) == 1);
  CHECK(strategy.iterationsUntilMeeting({.iteration = 100}) == 8);
  CHECK(strategy.describe() == "averaging every iteration up to iteration 100, then every 8 iterations");
  CHECK(PeriodicAveraging(1, 100).describe() == "averaging every iteration");
  CHECK(thrown<InvalidArgument>([] { PeriodicAveraging(2, -1); }) ==
        "synchronousUntil cannot be negative, got -1");
}

TEST_CASE("the divergence is measured where that is asked for, over all slices of the parameters") {
  PeriodicAveraging measuring(1, 0, true), plain(1);
  RecordingCollective exchange;
  Context context;
  const std::vector<double> weights = {1, 0, 2.5};
  for (auto* strategy : {&measuring, &plain}) {
    strategy->begin(exchange);
    for (int participant = 0; participant < 3; ++participant)
      strategy->meet(participant, {.weights = weights}, exchange, context);
  }
  CHECK(measuring.divergence() == 0.5);  // sqrt((1 + 2 + 3) / (3 * 8))
  CHECK(plain.divergence() == 0);
}
