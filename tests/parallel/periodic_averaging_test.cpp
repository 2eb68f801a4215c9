#include "muster/parallel/averaging/periodic_averaging.h"

#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "muster/parallel/collective/collective.h"
#include "tests/support/thrown.h"

using namespace muster;
using muster::test::thrown;

namespace {

/// Writes down what it is asked to merge.
class RecordingCollective final : public Collective {
 public:
  RecordingCollective() : blocks_(2) {
    blocks_[0].name = "parameters";
    blocks_[1].name = "velocity";
  }
  int participants() const override { return 3; }
  std::span<const SharedBlock> blocks() const override { return blocks_; }
  void merge(int participant, const SharedBlock& block, std::span<const double> weights, Context&) override {
    merged += fmt::format("{} {} {};", participant, block.name, weights[2]);
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
  RecordingCollective collective;
  Context context;
  const std::vector<double> weights = {1, 0, 2.5};
  strategy.meet(2, collective, weights, context);
  CHECK(collective.merged == "2 parameters 2.5;2 velocity 2.5;");
}
