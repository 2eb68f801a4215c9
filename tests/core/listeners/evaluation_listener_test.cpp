#include "muster/core/listeners/evaluation_listener.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/batch_of.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/list_iterator.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using EvaluationLines = std::vector<std::string>;

/// A listener whose lines are kept.
struct Evaluating {
  Evaluating(DataSetIterator& data, EvaluationOptions options, Model* of = nullptr)
      : trainer(of ? *of : echo), listener(data, with(std::move(options))) {}
  EvaluationOptions with(EvaluationOptions options) {
    options.sink = [this](std::string_view line) { lines.emplace_back(line); };
    return options;
  }
  EchoModel echo;
  FakeTrainer trainer;
  EvaluationLines lines;
  EvaluationListener listener;
};

TEST_CASE("the model is evaluated every N epochs") {
  // Two of four right; F1 of class 0 is 2/3, of class 1 is 0.
  ListIterator data(
      {batchOf(Tensor::of({1, 0, 1, 0, 1, 0, 0, 1}, {4, 2}), Tensor::of({1, 0, 1, 0, 0, 1, 1, 0}, {4, 2}))});
  Evaluating e(data, {.everyEpochs = 2}), named(data, {.data = "validation"});
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) e.listener.onEpochEnd({e.trainer, epoch, 0, 0, 0});
  const std::string rest = "accuracy 0.5000, macro F1 0.3333 on 4 examples";
  CHECK(e.lines == EvaluationLines{"epoch 2: " + rest, "epoch 4: " + rest});
  REQUIRE(e.listener.results().size() == 2);
  CHECK(e.listener.results()[1].epoch == 4);
  CHECK(e.listener.results()[1].evaluation.classification().count(1, 0) == 1);
  named.listener.onEpochEnd({named.trainer, 0, 0, 0, 0});
  CHECK(named.lines == EvaluationLines{"epoch 1: validation " + rest});
}

TEST_CASE("the model is evaluated every N iterations, and only once if an epoch ends there") {
  ListIterator data({batchOf(Tensor::of({1, 0, 0, 1}, {2, 2}), Tensor::of({1, 0, 1, 0}, {2, 2}))});
  Evaluating e(data, {.everyIterations = 4});
  /// An epoch with merges after these iterations.
  const auto epoch = [&](std::int64_t number, std::int64_t begin, const std::vector<std::int64_t>& merges) {
    e.listener.onEpochStart({e.trainer, number, begin, 0, 0});
    for (const std::int64_t iteration : merges)
      e.listener.onMerge({.trainer = e.trainer, .epoch = number, .iteration = iteration});
    e.listener.onEpochEnd({e.trainer, number, merges.empty() ? begin : merges.back(), 0, 0});
  };
  epoch(2, 5, {6, 7, 9, 12});  // no merge after 12, so it is evaluated once
  epoch(3, 12, {});
  epoch(4, 12, {16, 16});  // a resynchronisation changes the model
  const std::string rest = ": accuracy 0.5000, macro F1 0.3333 on 2 examples";
  CHECK(e.lines == EvaluationLines{"iteration 9" + rest, "iteration 12" + rest, "epoch 3" + rest,
                                   "epoch 4" + rest, "iteration 16" + rest, "epoch 5" + rest});
  CHECK(data.epochs.size() == 5);
  const auto& all = e.listener.results();
  CHECK(textOf(all[0].epoch, all[0].iteration, all[2].epoch, all[2].iteration) == "2 9 3 12");
}

TEST_CASE("a regression's line has its own scores") {
  MultiLayerNetwork network(
      {.inputShape = {1},
       .layers = {Output{.classes = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Identity}}});
  network.init();
  std::ranges::fill(network.block(BlockKind::Parameters).values.span<float>(), 1.0f);  // x + 1
  // Errors 0, 0, -3; the labels' mean is 3, so R2 = 1 - 9 / 14.
  InMemoryDataSetIterator data(Tensor::of({0, 1, 2}, {3, 1}), Tensor::of({1, 2, 6}, {3, 1}), 2);
  Evaluating e(data, {}, &network), asked(data, {.task = Task::Regression});  // of a model of classes
  e.listener.onEpochEnd({e.trainer, 0, 0, 0, 0});
  CHECK(e.lines == EvaluationLines{"epoch 1: R2 0.3571, RMSE 1.73205, MAE 1 on 3 examples"});
  CHECK(e.listener.results()[0].evaluation.loss() == doctest::Approx(3));
  asked.listener.onEpochEnd({asked.trainer, 0, 0, 0, 0});
  CHECK(asked.listener.results()[0].evaluation.regression().meanSquaredError() ==
        doctest::Approx(6));  // 1, 1, 16
}

TEST_CASE("an evaluation listener that would never evaluate is refused") {
  ListIterator data({});
  const auto problem = [&](const EvaluationOptions& options) {
    return thrown<InvalidArgument>([&] { EvaluationListener(data, options); });
  };
  CHECK(problem({.everyEpochs = 0}) ==
        "evaluation listener: everyEpochs and everyIterations are both 0, so it would never evaluate");
  CHECK(problem({.everyEpochs = -1}) == "evaluation listener: everyEpochs cannot be negative, got -1");
  CHECK(problem({.everyIterations = -2}) ==
        "evaluation listener: everyIterations cannot be negative, got -2");
}

}  // namespace
}  // namespace muster::test
