#include "muster/core/listeners/evaluation_listener.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/batch_of.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/list_iterator.h"
#include "tests/support/test.h"

namespace muster {

TEST_CASE("the model is evaluated every N epochs") {
  // Two of four right; F1 of class 0 is 2/3, of class 1 is 0.
  test::ListIterator data({test::batchOf(Tensor::of({1, 0, 1, 0, 1, 0, 0, 1}, {4, 2}),
                                         Tensor::of({1, 0, 1, 0, 0, 1, 1, 0}, {4, 2}))});
  test::EchoModel model;
  test::FakeTrainer trainer(model);
  std::vector<std::string> lines;
  EvaluationListener listener(
      data, {.everyEpochs = 2, .sink = [&](std::string_view line) { lines.emplace_back(line); }});
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) listener.onEpochEnd({trainer, epoch, 0, 0, 0});
  CHECK(lines == std::vector<std::string>{"epoch 2: accuracy 0.5000, F1 0.3333 on 4 examples",
                                          "epoch 4: accuracy 0.5000, F1 0.3333 on 4 examples"});
  REQUIRE(listener.results().size() == 2);
  CHECK(listener.results()[1].epoch == 4);
  CHECK(listener.results()[1].evaluation.classification().count(1, 0) == 1);
  lines.clear();
  EvaluationListener named(
      data, {.data = "validation", .sink = [&](std::string_view line) { lines.emplace_back(line); }});
  named.onEpochEnd({trainer, 0, 0, 0, 0});
  CHECK(lines == std::vector<std::string>{"epoch 1: validation accuracy 0.5000, F1 0.3333 on 4 examples"});
}

TEST_CASE("the model is evaluated every N iterations, and only once if an epoch ends there") {
  test::ListIterator data(
      {test::batchOf(Tensor::of({1, 0, 0, 1}, {2, 2}), Tensor::of({1, 0, 1, 0}, {2, 2}))});
  test::EchoModel model;
  test::FakeTrainer trainer(model);
  std::vector<std::string> lines;
  EvaluationListener listener(
      data, {.everyIterations = 4, .sink = [&](std::string_view line) { lines.emplace_back(line); }});
  const auto merge = [&](std::int64_t iteration) {
    listener.onMerge({.trainer = trainer, .epoch = 2, .iteration = iteration});
  };
  listener.onEpochStart({trainer, 2, 5, 0, 0});
  for (const std::int64_t iteration : {6, 7, 9, 12}) merge(iteration);
  CHECK(data.epochs.size() == 2);
  listener.onEpochEnd({trainer, 2, 12, 0, 0});
  CHECK(data.epochs.size() == 2);  // no merge since
  listener.onEpochStart({trainer, 3, 12, 0, 0});
  listener.onEpochEnd({trainer, 3, 12, 0, 0});
  CHECK(data.epochs.size() == 3);  // another epoch
  listener.onEpochStart({trainer, 4, 12, 0, 0});
  merge(16);
  merge(16);  // a resynchronisation changes the model
  listener.onEpochEnd({trainer, 4, 16, 0, 0});
  CHECK(data.epochs.size() == 5);
  const std::string rest = ": accuracy 0.5000, F1 0.3333 on 2 examples";
  CHECK(lines == std::vector<std::string>{"iteration 9" + rest, "iteration 12" + rest, "epoch 3" + rest,
                                          "epoch 4" + rest, "iteration 16" + rest, "epoch 5" + rest});
  CHECK(listener.results()[0].epoch == 2);
  CHECK(listener.results()[0].iteration == 9);
  CHECK(listener.results()[2].epoch == 3);
  CHECK(listener.results()[2].iteration == 12);
}

TEST_CASE("a regression's line has its own scores") {
  MultiLayerNetwork network(
      {.inputShape = {1},
       .layers = {Output{.classes = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Identity}}});
  network.init();
  std::ranges::fill(network.block(BlockKind::Parameters).values.span<float>(), 1.0f);  // x + 1
  // Errors 0, 0, -3; the labels' mean is 3, so R2 = 1 - 9 / 14.
  InMemoryDataSetIterator data(Tensor::of({0, 1, 2}, {3, 1}), Tensor::of({1, 2, 6}, {3, 1}), 2);
  test::FakeTrainer trainer(network);
  std::vector<std::string> lines;
  EvaluationListener listener(data, {.sink = [&](std::string_view line) { lines.emplace_back(line); }});
  listener.onEpochEnd({trainer, 0, 0, 0, 0});
  CHECK(lines == std::vector<std::string>{"epoch 1: R2 0.3571, RMSE 1.73205, MAE 1 on 3 examples"});
  CHECK(listener.results()[0].evaluation.loss() == doctest::Approx(3));

  test::EchoModel echo;  // its task is classification
  test::FakeTrainer other(echo);
  EvaluationListener asked(data, {.task = Task::Regression, .sink = [](std::string_view) {}});
  asked.onEpochEnd({other, 0, 0, 0, 0});
  CHECK(asked.results()[0].evaluation.regression().meanSquaredError() == doctest::Approx(6));  // 1, 1, 16
}

TEST_CASE("an evaluation listener that would never evaluate is refused") {
  test::ListIterator data({});
  const auto problem = [&](EvaluationOptions options) {
    return test::thrown<InvalidArgument>([&] { EvaluationListener(data, options); });
  };
  CHECK(problem({.everyEpochs = 0}) ==
        "evaluation listener: everyEpochs and everyIterations are both 0, so it would never evaluate");
  CHECK(problem({.everyEpochs = -1}) == "evaluation listener: everyEpochs cannot be negative, got -1");
  CHECK(problem({.everyIterations = -2}) ==
        "evaluation listener: everyIterations cannot be negative, got -2");
}

}  // namespace muster
