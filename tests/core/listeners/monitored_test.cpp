#include "muster/core/listeners/monitored.h"

#include "muster/core/data/in_memory.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/test.h"
#include "tests/support/toy_data.h"

using namespace muster;
using namespace muster::test;

namespace {

std::string refusal(const Monitored& monitored) {
  return thrown<InvalidArgument>([&] { monitored.validate("early stopping"); });
}

}  // namespace

TEST_CASE("each monitor knows which of two values is better") {
  CHECK(Monitored{.monitor = Monitor::Accuracy}.gain(0.9, 0.7) == doctest::Approx(0.2));
  CHECK(Monitored{.monitor = Monitor::Loss}.gain(0.9, 0.7) == doctest::Approx(-0.2));
  CHECK(Monitored{.monitor = Monitor::R2}.gain(1, 0) == 1);
  CHECK(Monitored{.monitor = Monitor::Auc}.gain(1, 0) == 1);
  CHECK(Monitored{.monitor = Monitor::F1}.gain(1, 0) == 1);
  CHECK(Monitored{.monitor = Monitor::TrainingScore}.gain(1, 0) == -1);
  CHECK(Monitored{.monitor = Monitor::Own, .mode = MonitorMode::Min}.gain(1, 0) == -1);
  CHECK_FALSE(modeOf(Monitor::Own).has_value());
}

TEST_CASE("what contradicts itself is refused") {
  auto data = ToyIterator::ofValues({1});
  CHECK(refusal({.validation = &data}) == "");
  CHECK(refusal({}) == "early stopping: the validation accuracy needs validation data, got none");
  CHECK(refusal({.monitor = Monitor::F1}) ==
        "early stopping: the validation F1 needs validation data, got none");
  CHECK(refusal({.validation = &data, .monitor = Monitor::F1, .mode = MonitorMode::Min}) ==
        "early stopping: mode min contradicts the validation F1, of which a larger one is better");
  CHECK(refusal({.validation = &data, .monitor = Monitor::TrainingScore}) ==
        "early stopping: the training score does not use the validation data given");
  CHECK(refusal({.monitor = Monitor::Own, .measure = [](Trainer&) { return 1.0; }})
            .starts_with("early stopping: mode must be given"));
  CHECK(refusal({.monitor = Monitor::Own, .mode = MonitorMode::Min}) ==
        "early stopping: Monitor::Own needs `measure`");
  CHECK(refusal({.validation = &data, .monitor = Monitor::Loss, .mode = MonitorMode::Max}) ==
        "early stopping: mode max contradicts the validation loss, of which a smaller one is better");
  CHECK(refusal({.monitor = Monitor::TrainingScore, .measure = [](Trainer&) { return 1.0; }}) ==
        "early stopping: `measure` works with Monitor::Own only, not with the training score");
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
