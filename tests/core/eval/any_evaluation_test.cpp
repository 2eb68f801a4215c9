#include "muster/core/eval/any_evaluation.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

const Output kNumbers{.classes = 2, .loss = Loss::MeanSquaredError, .activation = Activation::Identity};
const Tensor kFeatures = Tensor::of({0, 0, 1, 0, 0, 1}, {3, 2});

Output sigmoids(std::int64_t labels) {
  return {.classes = labels, .loss = Loss::BinaryCrossEntropy, .activation = Activation::Sigmoid};
}

/// A network whose parameters are all 0.
std::unique_ptr<MultiLayerNetwork> zeros(const Output& output, double l2 = 0) {
  auto network = std::make_unique<MultiLayerNetwork>(
      MultiLayerConfiguration{.l2 = l2, .inputShape = {2}, .layers = {output}});
  network->init();
  std::ranges::fill(network->block(BlockKind::Parameters).values.span<float>(), 0.0f);
  return network;
}

TEST_CASE("a network's task follows from its loss and activation") {
  CHECK(zeros({.classes = 3})->task() == Task::Classification);
  CHECK(zeros(kNumbers)->task() == Task::Regression);
  const Output shares{.classes = 3, .loss = Loss::MeanSquaredError, .activation = Activation::Softmax};
  CHECK(zeros(shares)->task() == Task::Classification);
  CHECK(zeros(sigmoids(3))->task() == Task::Labels);
  CHECK(zeros(sigmoids(1))->task() == Task::Classification);  // two classes
}

TEST_CASE("evaluateTask gives the task's evaluation and the network's own loss, without the penalty") {
  const auto network = zeros(kNumbers, /*l2=*/10);
  for (const std::int64_t batch : {1, 2, 3}) {
    InMemoryDataSetIterator data(kFeatures, Tensor::of({1, 0, 2, 0, 3, 4}, {3, 2}), batch);
    const AnyEvaluation e = network->evaluateTask(data);
    CHECK(textOf(e.examples(), e.columns(), e.mainScore().first) == "3 2 r2");
    CHECK(digitsOf(15, e.loss(), e.regression().meanSquaredError(0)) == digitsOf(15, 30.0 / 6, 14.0 / 3));
    CHECK(network->evaluateTask(data, Task::Regression) == e);
    CHECK(e.regression() == network->evaluateRegression(data));
    CHECK(AnyEvaluation::fromNumbers(e.toNumbers()) == e);
    CHECK_REFUSED(e.classification(), "evaluation: this is of the task regression, not classification");
    CHECK_REFUSED(e.accuracy(), "evaluation: a regression has no accuracy; it has R2, RMSE and MAE");
  }
  InMemoryDataSetIterator several(kFeatures, Tensor::of({1, 0, 1, 1, 0, 0}, {3, 2}), 2);
  const AnyEvaluation e = zeros(sigmoids(2))->evaluateTask(several);
  CHECK(digitsOf(6, e.loss(), e.labels().auc(), e.accuracy()) == digitsOf(6, std::log(2), 0.5, 0.5));
  CHECK(e.line() == "accuracy 0.5000, AUC 0.5000");
  const auto one = zeros(sigmoids(1));
  InMemoryDataSetIterator binary(kFeatures, Tensor::of({1, 0, 1}, {3, 1}), 2);
  CHECK(one->evaluateTask(binary).classification() == one->evaluate(binary));
  CHECK(one->evaluateBinary(binary).positives(0) == 2);
}

TEST_CASE("the loss of a classifier is its own, also with label smoothing") {
  InMemoryDataSetIterator data(kFeatures, Tensor::of({1, 0, 0, 1, 1, 0}, {3, 2}), 2);
  for (const double smoothing : {0.0, 0.2}) {
    const auto network = zeros({.classes = 2, .labelSmoothing = smoothing});
    network->block(BlockKind::Parameters).values.span<float>()[0] = std::log(3.0f);
    // The second example has probabilities 0.75 and 0.25 and is of the second class, the others a half.
    const double second = -(0.5 * smoothing * std::log(0.75) + (1 - 0.5 * smoothing) * std::log(0.25));
    CHECK(network->evaluateTask(data).loss() ==
          doctest::Approx((2 * std::log(2) + second) / 3).epsilon(1e-6));
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

}  // namespace
}  // namespace muster::test
