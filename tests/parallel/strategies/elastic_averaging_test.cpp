#include "muster/parallel/strategies/elastic_averaging.h"

#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("rounds equal those worked out by hand, from the old centre and from the new one") {
  // With learning rate 1, a step moves to the batch's value. Centre 0, replicas 8 and 24, centre rate 1/2, a
  // pull of 1/4: the mean 16 moves the centre to 8. From the old centre the replicas become 6 and 18, from
  // the new one 8 and 20. Distances are those before the merge: sqrt((8^2 + 24^2) / 2) / 0 is reported as 0;
  // then the replicas are 0 and 32, the centre is 8, and sqrt((8^2 + 24^2) / 2) / 8 = sqrt(5).
  for (const bool centreFirst : {false, true})
    for (const int devices : {0, 1, 2}) {
      INFO("centreFirst ", centreFirst, ", devices ", devices);
      ToyModel model({.training = {.updater = Sgd{.learningRate = 1}}});
      auto data = ToyIterator::ofValues({8, 24, 0, 32});
      std::vector<double> centres, distances;
      const auto recorder = onMerge([&](const MergeEvent& e) {
        centres.push_back(dynamic_cast<ToyModel&>(e.trainer.model()).parameters()[0]);
        CHECK(e.values[1].name == "distance to the centre");
        distances.push_back(e.values[1].value);
      });
      const ElasticAveraging options{.frequency = 1,
                                     .centreRate = 0.5,
                                     .elasticity = 0.25,
                                     .centreFirst = centreFirst,
                                     .measureDistance = true};
      wrapperOf(model, 2, options, devices, {recorder}).fit(data);
      CHECK(centres == std::vector<double>{8, 12});
      REQUIRE(distances.size() == 2);
      CHECK(distances[0] == 0);
      CHECK(distances[1] == doctest::Approx(std::sqrt(5)).epsilon(1e-15));
      std::vector<float> pulled;
      for (const auto& step : model.control().steps())
        if (step.stamp.iteration == 1) pulled.push_back(step.before[0]);
      CHECK(pulled == (centreFirst ? std::vector<float>{8, 20} : std::vector<float>{6, 18}));
    }
}

TEST_CASE("at centre rate 0 the centre stays") {
  ToyIterator data(ruleBatches(3), kRuleWidth);
  auto model = ruleToy();
  const auto before = model.parameters();
  wrapperOf(model, 3, ElasticAveraging{.frequency = 2, .centreRate = 0}).fit(data, 2);
  CHECK(model.parameters() == before);
}
