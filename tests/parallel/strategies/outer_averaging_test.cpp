#include "muster/parallel/strategies/outer_averaging.h"

#include "tests/parallel/rule_wrapper.h"
#include "tests/parallel/strategies/reference.h"
#include "tests/support/on_merge.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

std::string refusal(const OuterAveraging& options) {
  return thrown<InvalidArgument>([&] { options.validate(); });
}

}  // namespace

TEST_CASE("momentum is scaled with the learning rate on request") {
  const auto trained = [](bool follow, double decay) {
    const StepSchedule rate{.initial = 0.5, .decay = decay, .every = 1};
    ToyModel model({.training = {.updater = Sgd{.learningRate = rate}}});
    auto data = ToyIterator::ofValues({2, 6});
    auto wrapper = wrapperOf(model, 2, OuterAveraging{.momentum = 0.5, .followLearningRate = follow});
    wrapper.fit(data, 3);
    return model.parameters()[0];
  };
  CHECK(trained(true, 1) == trained(false, 1));
  CHECK(trained(true, 0.5) != trained(false, 0.5));
}

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
    auto builder = ParallelWrapper::Builder(model);
    builder.workers(2).pinThreads(false).internals({.pretendedDevices = devices}).listeners({recorder});
    builder.strategy(OuterAveraging{.rate = 0.5, .momentum = 0.5, .measureStep = true}).build().fit(data);
    CHECK(steps == std::vector<double>{0, 0, 1});  // relative to 0, 2 and 2
    CHECK(model.parameters()[0] == 4);
  }
}

TEST_CASE("against NumPy: classical, Nesterov, scaled by the learning rate; the updater's state") {
  if (!numpyFound()) return;
  OuterAveraging options{.frequency = 3, .rate = 0.7, .momentum = 0.9};
  checkAgainstNumpy("outer_averaging", "frequency=3 rate=0.7 momentum=0.9", options);
  options.updaterState = UpdaterState::Keep;
  options.nesterov = true;
  checkAgainstNumpy("outer_averaging", "frequency=3 rate=0.7 momentum=0.9 nesterov=1 state=keep", options);
  options.updaterState = UpdaterState::Reset;
  options.followLearningRate = true;
  checkAgainstNumpy("outer_averaging", "frequency=3 rate=0.7 momentum=0.9 nesterov=1 follow=1 state=reset",
                    options);
}

TEST_CASE("against NumPy: outer averaging with codecs") {
  if (!numpyFound()) return;
  for (const auto& [name, codec] : codecsInNumpy())
    checkAgainstNumpy(
        "outer_averaging", "frequency=2 rate=0.7 momentum=0.5 nesterov=1 codec=" + name,
        OuterAveraging{.frequency = 2, .rate = 0.7, .momentum = 0.5, .nesterov = true, .codec = codec});
}

TEST_CASE("against NumPy: presets of outer averaging") {
  if (!numpyFound()) return;
  const auto check = [](const std::string& options, auto preset) {
    checkAgainstNumpy("outer_averaging", options, [&](ParallelWrapper::Builder& builder, int workers) {
      OuterAveraging one = preset(workers);
      one.frequency = 2;
      builder.strategy(one);
    });
  };
  check("frequency=2 momentum=bmuf state=reset", [](int workers) { return OuterAveraging::bmuf(workers); });
  check("frequency=2 momentum=0.5 follow=1 state=keep", [](int) { return OuterAveraging::slowMo(); });
  check("frequency=2 rate=0.7 momentum=0.9 nesterov=1 state=keep",
        [](int) { return OuterAveraging::diloco(); });
  check("frequency=2 rate=0.8 state=keep", [](int) { return OuterAveraging::lookahead(); });
}

TEST_CASE("options out of range are refused by name") {
  CHECK(refusal({.frequency = 0}) == "outer averaging: every must be between 1 and 1099511627776, got 0");
  CHECK(refusal({.rate = 0}) == "outer averaging: rate must be above 0, got 0");
  CHECK(refusal({.rate = std::nan("")}) == "outer averaging: rate must be above 0, got nan");
  CHECK(refusal({.rate = 1.5e6}) == "outer averaging: rate can be at most 1000000, got 1500000");
  CHECK(refusal({.momentum = 1}) == "outer averaging: momentum must be in [0, 1), got 1");
  CHECK(OuterAveraging{.frequency = 2, .momentum = 0.5, .nesterov = true}.make()->describe() ==
        "outer averaging every 2 iterations (rate 1, Nesterov momentum 0.5)");
}
