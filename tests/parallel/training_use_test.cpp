// One training of a model at a time; trainings up to a number of epochs.
#include "muster/core/nn/training_use.h"

#include "muster/core/data/next_batch.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/io/model_file.h"
#include "muster/core/io/weights.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/nn/recompute_statistics.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/data_parallel/data_parallel.h"
#include "muster/parallel/inference/parallel_inference.h"
#include "tests/support/log_lines.h"
#include "tests/support/on_merge.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Calls `use` at the first merge, on the thread that called `fit()`.
std::shared_ptr<Listener> atFirstMerge(std::function<void()> use) {
  return onMerge([use = std::move(use), done = std::make_shared<bool>(false)](const MergeEvent&) {
    if (!std::exchange(*done, true)) use();
  });
}

MultiLayerConfiguration small() {
  return {.seed = 1, .inputShape = {1, 28, 28}, .layers = {Output{.classes = 10}}};
}

std::string onAnotherThread(const std::function<void()>& use) {
  std::string problem;
  std::thread([&] { problem = thrown<InvalidArgument>(use); }).join();
  return problem;
}

}  // namespace

TEST_CASE("a second training of a model in training is refused, by a wrapper or by fit") {
  GeneratedDigitsIterator data(8, 64, 1, true), other(8, 64, 2, true);
  for (const int workers : {0, 2}) {  // 0: model.fit
    CAPTURE(workers);
    MultiLayerNetwork model(small());
    model.init();
    auto second = toyWrapper(model, 2).build();
    std::set<std::string> problems;
    const auto tryAll = [&] {
      for (const std::function<void()>& fit : {std::function<void()>([&] { model.fit(other); }),
                                               std::function<void()>([&] { second.fit(other); })}) {
        problems.insert(thrown<InvalidArgument>(fit));
        problems.insert(onAnotherThread(fit));
      }
    };
    fitWith(model, workers, data, 1, {atFirstMerge(tryAll)});
    CHECK(problems == std::set<std::string>{
                          "fit: another fit() trains this model, of the model itself or of a wrapper; train "
                          "one at a time, or a copy (clone)"});
    CHECK_NOTHROW(second.fit(other));  // one after the other
    CHECK_NOTHROW(model.fit(other));
  }
}

TEST_CASE("while a model trains, only its listeners save, evaluate, serve and split it") {
  const TemporaryDirectory directory;
  const auto file = directory / "model.safetensors";
  GeneratedDigitsIterator data(8, 64, 1, true), other(8, 16, 2, false);
  MultiLayerNetwork model(small());
  model.init();
  auto second = toyWrapper(model, 1).build();
  const Tensor image = Tensor::zeros({1, 1, 28, 28});
  Tensor predictions;
  Batch digits;
  REQUIRE(nextBatch(other, digits));
  DataParallel parallel(model, {Device::cpu()}, 0, {.pinThreads = false});
  const std::vector<std::pair<std::string, std::function<void()>>> uses{
      {"save", [&] { model.save(file); }},
      {"output", [&] { model.output(digits, predictions); }},
      {"outputs", [&] { static_cast<void>(model.outputs(digits)); }},
      {"score", [&] { static_cast<void>(model.score(digits)); }},
      {"forward", [&] { model.forward(image, predictions); }},
      {"step", [&] { static_cast<void>(model.step(digits).wait()); }},
      {"clone", [&] { static_cast<void>(model.clone()); }},
      {"init", [&] { model.init(); }},
      {"fit normalisation", [&] { model.fitNormalisation(other); }},
      {"evaluate", [&] { static_cast<void>(model.evaluate(other)); }},
      {"evaluate", [&] { static_cast<void>(second.evaluate(other)); }},
      {"saveWeights", [&] { saveWeights(model, directory / "weights.safetensors"); }},
      {"loadWeights", [&] { loadWeights(model, directory / "weights.safetensors"); }},
      {"loadState", [&] { loadState(model, file); }},
      {"recompute statistics", [&] { recomputeStatistics(model, other); }},
      {"parallel inference", [&] { const ParallelInference serving(model); }},
      {"data parallel: forward", [&] { static_cast<void>(parallel.forward(image)); }},
      {"data parallel: updateParameters", [&] { parallel.updateParameters(0); }}};
  std::vector<std::string> problems;
  const auto tryAll = [&] {
    for (const auto& [what, use] : uses) problems.push_back(onAnotherThread(use));
    CHECK_NOTHROW(model.save(file));
  };
  toyWrapper(model, 2).listeners({atFirstMerge(tryAll)}).build().fit(data);
  REQUIRE(problems.size() == uses.size());
  for (std::size_t i = 0; i < uses.size(); ++i)
    CHECK(problems[i] ==
          uses[i].first +
              ": another thread trains this model; do it in a listener of that training, on the "
              "thread that called fit(), or after fit()");
  for (const auto& [what, use] : uses) CHECK_NOTHROW(use());
}

TEST_CASE("fitUntil trains up to a number of epochs, and says when nothing is left") {
  GeneratedDigitsIterator data(32, 64, 1, true);
  MultiLayerNetwork model(small());
  model.init();
  auto wrapper = toyWrapper(model, 2).build();
  wrapper.fitUntil(data, 2);
  CHECK(model.epoch() == 2);
  wrapper.fitUntil(data, 3);
  CHECK(model.epoch() == 3);
  LogLines lines;
  const auto count = [&](const std::string& text) { return std::ranges::count(lines.all(), text); };
  wrapper.fitUntil(data, 1);
  model.fitUntil(data, 3);
  CHECK(model.epoch() == 3);
  CHECK(count("fitUntil: nothing is left to train: the model has finished 3 of 1 epoch") == 1);
  CHECK(count("fitUntil: nothing is left to train: the model has finished 3 of 3 epochs") == 1);
  model.fitUntil(data, 4);
  CHECK(model.epoch() == 4);
  CHECK_REFUSED(wrapper.fitUntil(data, -1), "fitUntil: epochs cannot be negative, got -1");
}
