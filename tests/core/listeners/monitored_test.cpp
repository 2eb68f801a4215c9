#include "muster/core/listeners/monitored.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/batch_of.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/test.h"
#include "tests/support/toy_data.h"

namespace muster::test {
namespace {

std::string refusal(const Monitored& monitored) {
  return thrown<InvalidArgument>([&] { monitored.validate("early stopping"); });
}

TEST_CASE("each monitor knows which of two values is better") {
  for (const Monitor rises : {Monitor::Accuracy, Monitor::R2, Monitor::Auc, Monitor::F1})
    CHECK(Monitored{.monitor = rises}.gain(0.75, 0.5) == 0.25);
  for (const Monitor falls : {Monitor::Loss, Monitor::TrainingScore})
    CHECK(Monitored{.monitor = falls}.gain(0.75, 0.5) == -0.25);
  CHECK(Monitored{.monitor = Monitor::Own, .mode = MonitorMode::Min}.gain(1, 0) == -1);
  CHECK_FALSE(modeOf(Monitor::Own).has_value());
}

TEST_CASE("what contradicts itself is refused") {
  auto data = ToyIterator::ofValues({1});
  struct Row {
    Monitor monitor;
    const char* name;
    bool rises;
  };
  for (const auto& [monitor, name, rises] :
       {Row{Monitor::Accuracy, "accuracy", true}, Row{Monitor::F1, "F1", true}, Row{Monitor::R2, "R2", true},
        Row{Monitor::Auc, "AUC", true}, Row{Monitor::Loss, "loss", false}}) {
    CHECK(refusal({.validation = &data, .monitor = monitor}) == "");
    CHECK(refusal({.monitor = monitor}) ==
          fmt::format("early stopping: the validation {} needs validation data, got none", name));
    CHECK(
        refusal(
            {.validation = &data, .monitor = monitor, .mode = rises ? MonitorMode::Min : MonitorMode::Max}) ==
        fmt::format("early stopping: mode {} contradicts the validation {}, of which a {} one is better",
                    rises ? "min" : "max", name, rises ? "larger" : "smaller"));
  }
  CHECK(refusal({.validation = &data, .monitor = Monitor::TrainingScore}) ==
        "early stopping: the training score does not use the validation data given");
  CHECK(refusal({.monitor = Monitor::Own, .measure = [](Trainer&) { return 1.0; }}) ==
        "early stopping: mode must be given, Min or Max: whether a smaller or a larger monitored value is "
        "better");
  CHECK(refusal({.monitor = Monitor::Own, .mode = MonitorMode::Min}) ==
        "early stopping: Monitor::Own needs `measure`");
  CHECK(refusal({.monitor = Monitor::TrainingScore, .measure = [](Trainer&) { return 1.0; }}) ==
        "early stopping: `measure` works with Monitor::Own only, not with the training score");
}

TEST_CASE("a regression has no accuracy and no F1, unless it learns classes as one-hot rows") {
  MultiLayerNetwork network(
      {.inputShape = {1}, .layers = {Output{.classes = 2, .loss = Loss::MeanSquaredError}}});
  network.init();
  const auto problem = [&](Monitor monitor, const Tensor& labels) {
    InMemoryDataSetIterator data(Tensor::zeros({2, 1}), labels, 2);
    const Monitored monitored{.validation = &data, .monitor = monitor};
    return thrown<InvalidArgument>([&] { monitored.requireFits("me", network); });
  };
  for (const auto& [monitor, name] : {std::pair(Monitor::Accuracy, "accuracy"), {Monitor::F1, "F1"}}) {
    CHECK(problem(monitor, Tensor::of({1, 0, 0.5f, 0}, {2, 2})) ==
          fmt::format("me: a regression has no {}; monitor its loss or R2", name));
    CHECK(problem(monitor, Tensor::of({1, 0, 0, 1}, {2, 2})) == "");
  }
}

TEST_CASE("classes have no R2, and an AUC is of labels of 0 or 1 for each output") {
  const auto problem = [](Monitor monitor, const Output& output, const Tensor& labels) {
    MultiLayerNetwork network({.inputShape = {1}, .layers = {output}});
    network.init();
    InMemoryDataSetIterator data(Tensor::zeros({2, 1}), labels, 2);
    const Monitored monitored{.validation = &data, .monitor = monitor};
    return thrown<InvalidArgument>([&] { monitored.requireFits("me", network); });
  };
  const Output classes{.classes = 3}, binary{.units = 1, .loss = Loss::BinaryCrossEntropy},
      labels{.units = 2, .loss = Loss::BinaryCrossEntropy},
      numbers{.units = 1, .loss = Loss::MeanSquaredError};
  const std::string noAuc = "me: the AUC is of sigmoid outputs, with labels of 0 or 1 for each; monitor the ";
  CHECK(problem(Monitor::R2, classes, integers({2, 0})) ==
        "me: a classification has no R2; monitor its accuracy or loss");
  CHECK(problem(Monitor::R2, numbers, Tensor::of({2, 0}, {2, 1})) == "");
  CHECK(problem(Monitor::Auc, classes, integers({2, 0})) == noAuc + "accuracy or loss");
  CHECK(problem(Monitor::Auc, numbers, Tensor::of({2, 0.5f}, {2, 1})) == noAuc + "loss");
  CHECK(problem(Monitor::Auc, binary, integers({1, 0})) == "");
  CHECK(problem(Monitor::Auc, labels, Tensor::of({1, 0, 1, 1}, {2, 2})) == "");
}

TEST_CASE("the training score is the epoch's, and an own value what is measured") {
  EchoModel model;
  FakeTrainer trainer(model);
  const EpochEvent event{trainer, 0, 1, 0.25, 10};
  CHECK(Monitored{.monitor = Monitor::TrainingScore}.value(event) == 0.25);
  CHECK(Monitored{.monitor = Monitor::Own, .mode = MonitorMode::Max, .measure = [](Trainer&) { return 7.0; }}
            .value(event) == 7);
}

TEST_CASE("the F1 is the mean over the classes that occur") {
  EchoModel model;
  FakeTrainer trainer(model);
  // Class 0 is predicted for two of its three examples, class 1 for the third and its own; class 2 never is.
  const Tensor predictions = Tensor::of({1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0}, {4, 3});
  InMemoryDataSetIterator data(predictions, Tensor::of({1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0}, {4, 3}), 3);
  const EpochEvent event{trainer, 0, 1, 0, 10};
  CHECK(Monitored{.validation = &data, .monitor = Monitor::Accuracy}.value(event) == 0.75);
  CHECK(Monitored{.validation = &data, .monitor = Monitor::F1}.value(event) ==
        doctest::Approx((4.0 / 5 + 2.0 / 3) / 2));
}

}  // namespace
}  // namespace muster::test
