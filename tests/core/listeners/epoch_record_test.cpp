#include "muster/core/listeners/epoch_record.h"

#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/nn/training_state.h"
#include "tests/support/small_examples.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

std::unique_ptr<MultiLayerNetwork> network() {
  auto model = std::make_unique<MultiLayerNetwork>(
      MultiLayerConfiguration{.inputShape = {6}, .layers = {Output{.classes = 4}}});
  model->init();
  return model;
}

/// Trains with a record of its own, as a process that resumes the model.
std::shared_ptr<EpochRecord> record(MultiLayerNetwork& model, std::int64_t epochs) {
  const auto record = std::make_shared<EpochRecord>();
  test::SmallExamples data(6);
  model.setListeners({record});
  model.fit(data, epochs);
  model.setListeners({});
  return record;
}

void put(Model& model, const std::string& name, const std::vector<double>& numbers) {
  model.listenerState().push_back({name, numbersAs<double>(numbers)});
}

}  // namespace

TEST_CASE("scores of epochs continue from a file without a training state, too") {
  const test::TemporaryDirectory directory;
  const auto made = network();
  auto& model = *made;
  const auto first = record(model, 2);
  CHECK(first->firstEpoch() == 1);
  saveModel(model, directory / "model");
  const auto other = network();
  auto& resumed = *other;
  loadState(resumed, directory / "model");
  resumed.trainingState().clear();
  CHECK(record(resumed, 0)->scores() == first->scores());
  const auto second = record(resumed, 2);
  CHECK(second->firstEpoch() == 1);
  REQUIRE(second->scores().size() == 4);
  CHECK(second->scores()[1] == first->scores()[1]);
}

TEST_CASE("scores of epochs that do not end at the model's epoch are dropped") {
  const auto made = network();
  auto& model = *made;
  record(model, 2);
  test::SmallExamples data(6);
  model.fit(data);  // by a program that keeps no record
  auto next = record(model, 2);
  CHECK(next->firstEpoch() == 4);
  CHECK(next->scores().size() == 2);
  next = record(model, 1);  // of the epochs from 4 on
  CHECK(next->firstEpoch() == 4);
  CHECK(next->scores().size() == 3);

  model.setCounters(24, 4);  // an earlier state
  next = record(model, 1);
  CHECK(next->firstEpoch() == 5);
  CHECK(next->scores().size() == 1);
}

TEST_CASE("a new training has no scores or tests of an earlier one") {
  const auto made = network();
  auto& model = *made;
  record(model, 2);
  put(model, "test accuracies", {1, 6, 0.5});
  CHECK(record(model, 0)->tests().size() == 1);
  model.setCounters(0, 0);
  const auto anew = record(model, 1);
  CHECK(anew->firstEpoch() == 1);
  CHECK(anew->scores().size() == 1);
  CHECK(anew->tests().empty());
}

TEST_CASE("numbers in a file that are no valid epochs or iterations are ignored") {
  constexpr double kHuge = 1e300;
  for (const double number : {double{test::kNan}, -1.0, 0.5, kHuge, -kHuge, double(INFINITY)}) {
    CAPTURE(number);
    const auto made = network();
    auto& model = *made;
    test::SmallExamples data(6);
    model.fit(data, 2);
    put(model, "scores by epoch", {number, 0.25, 0.125});
    put(model, "test accuracies", {number, 6, 0.5, 1, number, 0.5, 2, 12, 0.75});
    const auto next = record(model, 1);
    CHECK(next->firstEpoch() == 3);
    CHECK(next->scores().size() == 1);
    REQUIRE(next->tests().size() == 1);
    CHECK(next->tests()[0].epoch == 2);
    CHECK(next->tests()[0].iteration == 12);
  }
}

}  // namespace muster
