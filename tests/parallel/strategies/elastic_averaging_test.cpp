#include "muster/parallel/strategies/elastic_averaging.h"

#include "tests/parallel/rule_wrapper.h"
#include "tests/parallel/strategies/reference.h"
#include "tests/support/on_merge.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Records the centre and the values at each merge.
std::shared_ptr<Listener> recordMerges(std::vector<double>& centres,
                                       std::vector<double>* distances = nullptr) {
  return onMerge([&centres, distances](const MergeEvent& e) {
    centres.push_back(dynamic_cast<ToyModel&>(e.trainer.model()).parameters()[0]);
    CHECK(e.values.front().name == "period");
    for (const MergeValue& value : e.values.subspan(1)) {
      CHECK(value.name == "distance to the centre");
      if (distances) distances->push_back(value.value);
    }
  });
}

std::string refusal(const ElasticAveraging& options) {
  return thrown<InvalidArgument>([&] { options.validate(); });
}

}  // namespace

TEST_CASE("rounds equal those worked out by hand, from the old centre and from the new one") {
  // With learning rate 1, a step moves to the batch's value. Centre 0, replicas 8 and 24, centre rate 1/2, a
  // pull of 1/4: the mean 16 moves the centre to 8. From the old centre the replicas become 6 and 18, from
  // the new one 8 and 20. Distances are those before the merge: sqrt((8^2 + 24^2) / 2) / 0 is reported as 0;
  // then the replicas are 0 and 32, the centre is 8, and sqrt((8^2 + 24^2) / 2) / 8 = sqrt(5).
  for (const bool centreFirst : {false, true})
    for (const int devices : {0, 1, 2}) {
      CAPTURE(centreFirst);
      CAPTURE(devices);
      ToyModel model({.training = {.updater = Sgd{.learningRate = 1}}});
      auto data = ToyIterator::ofValues({8, 24, 0, 32});
      std::vector<double> centres, distances;
      const ElasticAveraging options{.frequency = 1,
                                     .centreRate = 0.5,
                                     .elasticity = 0.25,
                                     .centreFirst = centreFirst,
                                     .measureDistance = true};
      wrapperOf(model, 2, options, devices, {recordMerges(centres, &distances)}).fit(data);
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

TEST_CASE("a round conserves the sum of the replicas and the centre") {
  // Integers below 2^12 in multiples of 4 before each of two exchanges: all sums are exact.
  ToyModel model({.training = {.updater = Sgd{.learningRate = 1}}});
  const std::vector<float> values = {64, 128, 1024, 256, 512, 960, 16, 32, 0, 0, 0, 0};
  auto data = ToyIterator::ofValues(values);
  std::vector<double> centres = {0};
  const ElasticAveraging options{.frequency = 1, .centreRate = 0.5};  // elasticity 1/8
  wrapperOf(model, 4, options, 0, {recordMerges(centres)}).fit(data);
  std::vector<double> sums(3);
  for (const auto& step : model.control().steps())
    sums[static_cast<std::size_t>(step.stamp.iteration)] += step.before[0];
  CHECK(sums[1] + centres[1] == 64 + 128 + 1024 + 256 + centres[0]);
  CHECK(sums[2] + centres[2] == 512 + 960 + 16 + 32 + centres[1]);
  CHECK(centres[1] == 184);
}

TEST_CASE("with elasticity 0 workers train by themselves, and at centre rate 0 the centre stays") {
  constexpr int kWorkers = 3;
  ToyIterator data(ruleBatches(kWorkers), kRuleWidth);
  for (const int devices : {0, 2}) {
    auto model = ruleToy();
    wrapperOf(model, kWorkers, ElasticAveraging{.frequency = 2, .elasticity = 0}, devices).fit(data, 2);
    checkTrainedAlone(model, kWorkers, 2);
  }
  auto model = ruleToy();
  const auto before = model.parameters();
  wrapperOf(model, kWorkers, ElasticAveraging{.frequency = 2, .centreRate = 0}).fit(data, 2);
  CHECK(model.parameters() == before);
}

TEST_CASE("EAMSGD without momentum equals EASGD") {
  const auto parameters = [](const Updater& updater) {
    ToyModel model({.size = kRuleWidth, .training = {.updater = updater}});
    ToyIterator data(ruleBatches(3), kRuleWidth);
    wrapperOf(model, 3, ElasticAveraging{.frequency = 2}).fit(data, 2);
    return model.parameters();
  };
  CHECK(parameters(Nesterovs{.learningRate = 0.25, .momentum = 0}) == parameters(Sgd{.learningRate = 0.25}));
}

TEST_CASE("against NumPy: EASGD, EAMSGD (Nesterov momentum), SMA, and the order of updates") {
  if (!numpyFound()) return;
  checkAgainstNumpy("elastic_averaging", "frequency=3", ElasticAveraging{.frequency = 3});
  checkAgainstNumpy("elastic_averaging", "frequency=2 beta=0.5 alpha=0.3 order=centre state=average",
                    ElasticAveraging{.frequency = 2,
                                     .centreRate = 0.5,
                                     .elasticity = 0.3,
                                     .centreFirst = true,
                                     .updaterState = UpdaterState::Average});
  checkAgainstNumpy("elastic_averaging", "frequency=1 beta=1 alpha=0.1 order=centre",
                    ElasticAveraging::sma());
  checkAgainstNumpy("elastic_averaging", "frequency=3 beta=0.6 state=reset",
                    ElasticAveraging{.frequency = 3, .centreRate = 0.6, .updaterState = UpdaterState::Reset});
  for (const auto& [name, codec] : codecsInNumpy())
    checkAgainstNumpy("elastic_averaging", "frequency=2 codec=" + name,
                      ElasticAveraging{.frequency = 2, .codec = codec});
}

TEST_CASE("options out of range are refused by name") {
  CHECK(refusal({.frequency = 0}) == "elastic averaging: every must be between 1 and 1099511627776, got 0");
  CHECK(refusal({.centreRate = 1.5}) == "elastic averaging: centreRate must be in [0, 1], got 1.5");
  CHECK(refusal({.centreRate = std::nan("")}) == "elastic averaging: centreRate must be in [0, 1], got nan");
  CHECK(refusal({.elasticity = -0.1}) == "elastic averaging: elasticity must be in [0, 1], got -0.1");
  CHECK(refusal({.updaterState = static_cast<UpdaterState>(9)}) == "updaterState: there is no choice 9");
  CHECK(ElasticAveraging{}.make()->describe() ==
        "elastic averaging every 10 iterations (centre rate 0.9, elasticity 0.9 / workers)");
  CHECK(ElasticAveraging::sma().make()->describe() ==
        "elastic averaging every iteration (centre rate 1, elasticity 0.1, centre first)");
}
