#include "muster/parallel/strategies/outer_averaging.h"

#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("listeners receive the norm of the outer step if it is measured") {
  // With learning rate 1 the mean is that of the batches. W moves from 0 to 2 (rate 0.5, mean 4); with mean 0
  // the momentum, half of that step, and the new move cancel; with mean 6, W moves to 4.
  for (const int devices : {0, 1, 2}) {
    CAPTURE(devices);
    ToyModel model({.training = {.updater = Sgd{.learningRate = 1}}});
    auto data = ToyIterator::ofValues({3, 5, 0, 0, 6, 6});
    std::vector<double> steps;
    const auto recorder = onMerge([&](const MergeEvent& e) {
      REQUIRE(e.values.size() == 2);  // the period's values come first
      CHECK(e.values[1].name == "outer step");
      steps.push_back(e.values[1].value);
    });
    wrapperOf(model, 2, OuterAveraging{.rate = 0.5, .momentum = 0.5, .measureStep = true}, devices,
              {recorder})
        .fit(data);
    CHECK(steps == std::vector<double>{0, 0, 1});  // relative to 0, 2 and 2
    CHECK(model.parameters()[0] == 4);
  }
}
