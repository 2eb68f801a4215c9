#include "muster/core/listeners/epoch_record.h"

#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/nn/training_state.h"
#include "tests/support/small_examples.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

struct Recorded {
  Recorded() { model.init(); }
  /// Trains with a record of its own, as a process that resumes the model.
  std::shared_ptr<EpochRecord> record(std::int64_t epochs) {
    const auto record = std::make_shared<EpochRecord>();
    train(epochs, {record});
    return record;
  }
  /// "the first epoch, so many scores"
  std::string recorded(std::int64_t epochs) {
    const auto all = record(epochs);
    return textOf(all->firstEpoch(), all->scores().size());
  }
  void train(std::int64_t epochs, const Listeners& listeners = {}) {
    SmallExamples data(6);
    model.setListeners(listeners);
    model.fit(data, epochs);
    model.setListeners({});
  }
  void put(const std::string& name, const std::vector<double>& numbers) {
    model.listenerState().push_back({name, numbersAs<double>(numbers)});
  }
  MultiLayerNetwork model{{.inputShape = {6}, .layers = {Output{.classes = 4}}}};
};

TEST_CASE("scores of epochs continue from a file without a training state, too") {
  const TemporaryDirectory directory;
  Recorded one, resumed;
  const auto first = one.record(2);
  CHECK(first->firstEpoch() == 1);
  saveModel(one.model, directory / "model");
  loadState(resumed.model, directory / "model");
  resumed.model.trainingState().clear();
  CHECK(resumed.record(0)->scores() == first->scores());
  const auto second = resumed.record(2);
  CHECK(second->firstEpoch() == 1);
  REQUIRE(second->scores().size() == 4);
  CHECK(second->scores()[1] == first->scores()[1]);
}

TEST_CASE("scores of epochs that do not end at the model's epoch are dropped") {
  Recorded r;
  r.record(2);
  r.train(1);  // by a program that keeps no record
  CHECK(r.recorded(2) == "4 2");
  CHECK(r.recorded(1) == "4 3");
  r.model.setCounters(24, 4);  // an earlier state
  CHECK(r.recorded(1) == "5 1");
}

TEST_CASE("a new training has no scores or tests of an earlier one") {
  Recorded r;
  r.record(2);
  r.put("test accuracies", {1, 6, 0.5});
  CHECK(r.record(0)->tests().size() == 1);
  r.model.setCounters(0, 0);
  const auto anew = r.record(1);
  CHECK(textOf(anew->firstEpoch(), anew->scores().size(), anew->tests().size()) == "1 1 0");
}

TEST_CASE("numbers in a file that are no valid epochs or iterations are ignored") {
  for (const double number : {double{kNan}, -1.0, 0.5, 1e300, -1e300, double{kInfinity}}) {
    CAPTURE(number);
    Recorded r;
    r.train(2);
    r.put("scores by epoch", {number, 0.25, 0.125});
    r.put("test accuracies", {number, 6, 0.5, 1, number, 0.5, 2, 12, 0.75});
    const auto next = r.record(1);
    CHECK(textOf(next->firstEpoch(), next->scores().size()) == "3 1");
    REQUIRE(next->tests().size() == 1);
    CHECK(textOf(next->tests()[0].epoch, next->tests()[0].iteration) == "2 12");
  }
}

}  // namespace
}  // namespace muster::test
