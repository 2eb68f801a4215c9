#include "muster/core/eval/any_evaluation.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using doctest::Approx;

MultiLayerConfiguration configurationOf(const Output& output, double l2 = 0) {
  return {.l2 = l2, .inputShape = {2}, .layers = {output}};
}

const Output kNumbers{.classes = 2, .loss = Loss::MeanSquaredError, .activation = Activation::Identity};

Output sigmoids(std::int64_t labels) {
  return {.classes = labels, .loss = Loss::BinaryCrossEntropy, .activation = Activation::Sigmoid};
}

Task taskOf(const Output& output) {
  MultiLayerNetwork network(configurationOf(output));
  network.init();
  return network.task();
}

}  // namespace

TEST_CASE("a network's task follows from its loss and activation") {
  CHECK(taskOf({.classes = 3}) == Task::Classification);
  CHECK(taskOf(kNumbers) == Task::Regression);
  CHECK(taskOf({.classes = 3, .loss = Loss::MeanSquaredError, .activation = Activation::Softmax}) ==
        Task::Classification);
  CHECK(taskOf(sigmoids(3)) == Task::Labels);
  CHECK(taskOf(sigmoids(1)) == Task::Classification);  // two classes
}

TEST_CASE("evaluateTask gives the task's evaluation and the network's own loss, without the penalty") {
  const Tensor features = Tensor::of({0, 0, 1, 0, 0, 1}, {3, 2});
  MultiLayerNetwork network(configurationOf(kNumbers, /*l2=*/10));
  network.init();
  auto parameters = network.block(BlockKind::Parameters).values.span<float>();
  std::ranges::fill(parameters, 0.0f);  // predicts 0, 0
  const Tensor labels = Tensor::of({1, 0, 2, 0, 3, 4}, {3, 2});
  for (const std::int64_t batch : {1, 2, 3}) {
    InMemoryDataSetIterator data(features, labels, batch);
    const AnyEvaluation e = network.evaluateTask(data);
    CHECK(e.task() == Task::Regression);
    CHECK(e.examples() == 3);
    CHECK(e.columns() == 2);
    CHECK(e.loss() == Approx(30.0 / 6).epsilon(1e-15));
    CHECK(network.evaluateTask(data, Task::Regression) == e);
    CHECK(e.regression().meanSquaredError(0) == Approx(14.0 / 3).epsilon(1e-15));
    CHECK(e.regression() == network.evaluateRegression(data));
    CHECK(e.mainScore().first == "r2");
    CHECK(AnyEvaluation::fromNumbers(e.toNumbers()) == e);
    CHECK_REFUSED(e.classification(), "evaluation: this is of the task regression, not classification");
    CHECK_REFUSED(e.accuracy(), "evaluation: a regression has no accuracy; it has R2, RMSE and MAE");
  }

  MultiLayerNetwork several(configurationOf(sigmoids(2)));
  several.init();
  std::ranges::fill(several.block(BlockKind::Parameters).values.span<float>(), 0.0f);  // predicts 0.5, 0.5
  InMemoryDataSetIterator data(features, Tensor::of({1, 0, 1, 1, 0, 0}, {3, 2}), 2);
  const AnyEvaluation e = several.evaluateTask(data);
  CHECK(e.task() == Task::Labels);
  CHECK(e.loss() == Approx(std::log(2)).epsilon(1e-6));
  CHECK(e.labels().auc() == 0.5);
  CHECK(e.accuracy() == 0.5);
  CHECK(e.line() == "accuracy 0.5000, AUC 0.5000");

  MultiLayerNetwork one(configurationOf(sigmoids(1)));
  one.init();
  InMemoryDataSetIterator binary(features, Tensor::of({1, 0, 1}, {3, 1}), 2);
  CHECK(one.evaluateTask(binary).classification() == one.evaluate(binary));
  CHECK(one.evaluateBinary(binary).positives(0) == 2);
}

TEST_CASE("the loss of a classifier is its own, also with label smoothing") {
  const Tensor features = Tensor::of({0, 0, 1, 0, 0, 1}, {3, 2});
  InMemoryDataSetIterator data(features, Tensor::of({1, 0, 0, 1, 1, 0}, {3, 2}), 2);
  for (const double smoothing : {0.0, 0.2}) {
    MultiLayerNetwork network(configurationOf({.classes = 2, .labelSmoothing = smoothing}));
    network.init();
    std::ranges::fill(network.block(BlockKind::Parameters).values.span<float>(), 0.0f);
    network.block(BlockKind::Parameters).values.span<float>()[0] = std::log(3.0f);
    // The second example has probabilities 0.75 and 0.25 and is of the second class, the others a half.
    const double second = -(0.5 * smoothing * std::log(0.75) + (1 - 0.5 * smoothing) * std::log(0.25));
    CHECK(network.evaluateTask(data).loss() == Approx((2 * std::log(2) + second) / 3).epsilon(1e-6));
  }
}

TEST_CASE("evaluations of different tasks are not merged") {
  AnyEvaluation e(Task::Regression, 2);
  CHECK_REFUSED(e.merge(AnyEvaluation(Task::Labels, 2)),
                "evaluation: this is of the task labels, not regression");
  CHECK(std::isnan(e.loss()));
  CHECK(AnyEvaluation(Task::Classification, 1).columns() == 2);
  CHECK_THROWS_AS(AnyEvaluation::fromNumbers(std::vector<std::int64_t>{7}), InvalidArgument);
}

}  // namespace muster
