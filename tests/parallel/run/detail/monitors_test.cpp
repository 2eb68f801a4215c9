#include "muster/parallel/run/detail/monitors.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::detail;

namespace {

LoadedData dataWith(bool validation, bool test) {
  const auto examples = [](bool any) {  // of two features and a number to predict
    return any ? std::make_unique<InMemoryDataSetIterator>(Tensor::zeros({6, 2}), Tensor::zeros({6, 1}), 3)
               : nullptr;
  };
  LoadedData data;
  data.validation = examples(validation);
  data.test = examples(test);
  return data;
}

std::string refusal(const RunListeners& listeners, LoadedData data,
                    const Layer& output = Output{.classes = 3}) {
  MultiLayerNetwork network({.inputShape = {2}, .layers = {output}});
  network.init();
  return test::thrown<InvalidArgument>([&] {
    checkMonitors({.data = {}, .network = {}, .training = {}, .listeners = listeners}, data, network);
  });
}

const std::string kNoTests = " needs data to test with: data.validationExamples, or a test set";

}  // namespace

TEST_CASE("data to look at may test; a listener chooses by data to validate with, or the training's score") {
  auto both = dataWith(true, true), test = dataWith(false, true), none = dataWith(false, false);
  CHECK(&watched(both, "a") == both.validation.get());
  CHECK(&watched(test, "a") == test.test.get());
  CHECK_REFUSED(watched(none, "a"), "a" + kNoTests);

  const auto loss = monitoredOf({.monitor = Monitor::Loss, .mode = "min"}, both, "a");
  CHECK(loss.validation == both.validation.get());
  CHECK((loss.monitor == Monitor::Loss));
  CHECK((loss.mode == MonitorMode::Min));
  CHECK(monitoredOf({.monitor = Monitor::TrainingScore}, test, "a").validation == nullptr);
  CHECK_REFUSED(monitoredOf({.monitor = Monitor::Loss}, test, "a"),
                "a chooses by examples that are neither trained on nor tested with: give "
                "data.validationExamples, a number of training examples to hold out, or the monitor "
                "trainingScore");
}

TEST_CASE("listeners without the examples that they need are refused together, with how to do without") {
  const RunListeners stops{.earlyStopping = RunEarlyStopping{}};
  const RunCheckpoints best{.directory = "c", .best = RunMonitor{}};
  CHECK(refusal({.testEvery = 1}, dataWith(false, true)) == "");
  CHECK(refusal(stops, dataWith(true, false)) == "");
  CHECK(refusal({.checkpoints = RunCheckpoints{.directory = "c"}}, dataWith(false, false)) == "");
  CHECK(refusal({.testIterations = 1}, dataWith(false, false)) == "listeners.testIterations" + kNoTests);
  CHECK(refusal(stops, dataWith(false, true)).starts_with("listeners.earlyStopping chooses by examples "));
  CHECK(refusal({.checkpoints = best, .reduceOnPlateau = RunPlateau{}}, dataWith(false, true))
            .ends_with("trainingScore; so does listeners.checkpoints.best; without them: "
                       "listeners.reduceOnPlateau=null listeners.checkpoints.best=null"));
  CHECK(refusal({.testEvery = 1, .checkpoints = best, .earlyStopping = RunEarlyStopping{}},
                dataWith(false, false)) ==
        "listeners.testEvery" + kNoTests +
            "; so do listeners.checkpoints.best, listeners.earlyStopping; without them: "
            "listeners.testEvery=0 listeners.checkpoints.best=null listeners.earlyStopping=null");
}

TEST_CASE("a score that the network does not have is refused, for each listener by its name") {
  const Layer classes = Output{.classes = 3}, numbers = Output{.units = 1, .loss = Loss::MeanSquaredError},
              labels = Output{.units = 2, .loss = Loss::BinaryCrossEntropy};
  const auto refused = [](Monitor monitor, const Layer& output, const std::string& text) {
    const RunMonitor by{.monitor = monitor};
    for (const auto& [field, listeners] :
         {std::pair<std::string, RunListeners>{"earlyStopping",
                                               {.earlyStopping = RunEarlyStopping{.monitored = by}}},
          {"reduceOnPlateau", {.reduceOnPlateau = RunPlateau{.monitored = by}}},
          {"checkpoints.best", {.checkpoints = RunCheckpoints{.directory = "c", .best = by}}}})
      CHECK(refusal(listeners, dataWith(true, false), output) ==
            (text.empty() ? "" : "listeners." + field + ": " + text + "; monitor its loss"));
  };
  for (const auto monitor : {Monitor::Loss, Monitor::R2}) refused(monitor, numbers, "");
  for (const auto monitor : {Monitor::Auc, Monitor::F1}) refused(monitor, labels, "");
  refused(Monitor::F1, classes, "");
  refused(Monitor::R2, classes, "r2 is measured of a regression, and this network is for classes");
  refused(Monitor::R2, labels, "r2 is measured of a regression, and this network is for labels");
  refused(Monitor::Auc, numbers,
          "auc is measured of a network with several labels, and this network is for numbers");
  LoadedData data;
  data.validation =
      std::make_unique<InMemoryDataSetIterator>(Tensor::zeros({2, 2}), Tensor::of({0.5f, 2}, {2, 1}), 2);
  CHECK(refusal({.earlyStopping = RunEarlyStopping{.monitored = {.monitor = Monitor::F1}}}, std::move(data),
                numbers) == "listeners.earlyStopping: a regression has no F1; monitor its loss or R2");
}

TEST_CASE("a remark says that listeners look at a loss without the weights of the classes") {
  LoadedData plain, weighted, equal;
  weighted.classWeights = {1, 1, 5};
  equal.classWeights = {2, 2, 2};
  const RunListeners stops{.earlyStopping = RunEarlyStopping{}},
      byF1{.earlyStopping = RunEarlyStopping{.monitored = {.monitor = Monitor::F1}}},
      three{.checkpoints = RunCheckpoints{.directory = "c", .best = RunMonitor{}},
            .earlyStopping = RunEarlyStopping{},
            .reduceOnPlateau = RunPlateau{}},
      none{.checkpoints = RunCheckpoints{.directory = "c"}};
  const std::string loss =
      "the loss of the validation data without class weights, which favours frequent classes";
  CHECK(unweightedLoss(weighted) == loss);
  CHECK(weightsRemark(stops, weighted) == "listeners.earlyStopping looks at " + loss +
                                              "; listeners.earlyStopping.monitor=f1 counts each class alike");
  CHECK(weightsRemark(three, weighted) ==
        "listeners.earlyStopping, listeners.checkpoints.best, listeners.reduceOnPlateau look at " + loss +
            "; listeners.earlyStopping.monitor=f1 listeners.checkpoints.best.monitor=f1 "
            "listeners.reduceOnPlateau.monitor=f1 count each class alike");
  for (const auto* const listeners : {&byF1, &none}) CHECK(weightsRemark(*listeners, weighted) == "");
  for (const auto* const data : {&plain, &equal}) {
    CHECK(unweightedLoss(*data) == "");
    CHECK(weightsRemark(stops, *data) == "");
  }
}
