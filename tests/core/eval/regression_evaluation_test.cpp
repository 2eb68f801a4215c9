#include "muster/core/eval/regression_evaluation.h"

#include "muster/core/eval/non_finite_prediction.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

// See evaluation_golden.py.
const Tensor kLabels =
    Tensor::of({3, 1000001, -0.5f, 1000002.5f, 2, 999999.25f, 7, 1000000, 4.25f, 1000001.75f}, {5, 2});

Tensor predictionsOf() {
  constexpr float kErrors[] = {-0.5f, 0.25f, 0.5f, -0.5f, 0, 1, 1, 0.75f, -2, -0.25f};
  Tensor predictions = cloneTensor(kLabels);
  for (std::int64_t i = 0; i < 10; ++i) predictions.data<float>()[i] += kErrors[i];
  return predictions;
}

RegressionEvaluation wholeTable() {
  RegressionEvaluation e(2);
  e.add(predictionsOf(), kLabels);
  return e;
}

TEST_CASE("a regression's scores equal scikit-learn's") {
  const RegressionEvaluation e = wholeTable();
  CHECK(digitsOf(14, e.meanSquaredError(0), e.meanSquaredError(1), e.meanSquaredError()) ==
        "1.1 0.3875 0.74375");
  CHECK(digitsOf(14, e.rootMeanSquaredError(1), e.rootMeanSquaredError()) ==
        "0.62249497989944 0.83565191403479");
  CHECK(digitsOf(14, e.meanAbsoluteError(0), e.meanAbsoluteError()) == "0.8 0.675");
  CHECK(digitsOf(14, e.r2(0), e.r2(1), e.r2()) ==  // the mean of column 1 is a million
        "0.82084690553746 0.71611721611722 0.76848206082734");
  CHECK(digitsOf(13, e.correlation(0), e.correlation(1)) == "0.9230191796203 0.9952531725723");
  CHECK(e.summary().starts_with("5 examples, 2 columns: R2 0.7685, RMSE 0.835652, MAE 0.675\n"));
}

TEST_CASE("a regression's evaluation depends neither on the order nor on the batches") {
  const RegressionEvaluation e = wholeTable();
  const Tensor predictions = predictionsOf();
  RegressionEvaluation backwards(2);
  for (std::int64_t i = 4; i >= 0; --i) {
    RegressionEvaluation one(2);
    one.add(predictions.rows(i, i + 1), kLabels.rows(i, i + 1));
    backwards.merge(one);
  }
  CHECK(backwards == e);
  CHECK(backwards.r2() == e.r2());
  CHECK(RegressionEvaluation::fromNumbers(e.toNumbers()) == e);
  RegressionEvaluation masked(2), some(2), steps(2);
  masked.add(predictions, kLabels, Tensor::of({1, 0, 0, 2, 0}, {5}));
  some.add(predictions.rows(0, 1), kLabels.rows(0, 1));
  some.add(predictions.rows(3, 4), kLabels.rows(3, 4));
  CHECK(masked == some);
  steps.add(predictions.reshape({1, 5, 2}), kLabels.reshape({1, 5, 2}), Tensor::of({1, 0, 0, 1, 0}, {1, 5}));
  CHECK(steps == some);
}

TEST_CASE("equal labels, and none") {
  RegressionEvaluation e(1);
  CHECK(textOf(e.meanSquaredError(), e.r2()) == "0 0");
  const Tensor labels = Tensor::of({0.1f, 0.1f, 0.1f}, {3, 1});
  e.add(labels, labels);
  CHECK(textOf(e.r2(), e.correlation()) == "nan nan");
  e.add(Tensor::of({0.2f}, {1, 1}), Tensor::of({0.1f}, {1, 1}));
  CHECK_CONTAINS(e.summary(), "4 examples, 1 column: R2 undefined, RMSE 0.05");
  CHECK(e.summary().ends_with("  undefined    undefined\n"));
  RegressionEvaluation two(2);  // the labels of one column are equal, of the other 1 and 3
  two.add(Tensor::of({5, 1, 5, 2}, {2, 2}), Tensor::of({5, 1, 5, 3}, {2, 2}));
  CHECK(textOf(two.r2(0), two.r2(1), two.r2()) == "nan 0.5 0.5");
  CHECK(textOf(two.correlation(0), two.correlation(1), two.correlation()) == "nan 1 1");
}

// Kinds of wrong rows are in rows_test.
TEST_CASE("what a regression cannot be evaluated on is refused, and nothing is added") {
  RegressionEvaluation e = wholeTable();
  CHECK(thrown<NonFinitePrediction>([&] {  // the model is at fault, and below the labels
          e.add(Tensor::of({1, 2, 3, kNan}, {2, 2}), Tensor::zeros({2, 2}));
        }) == "evaluation: a prediction for example 1 is NaN");
  CHECK_REFUSED(e.add(Tensor::zeros({2, 3}), Tensor::zeros({2, 3})),
                "evaluation: expected float32 predictions [N, 2] or [N, T, 2], got float32 [2, 3] on cpu");
  CHECK(e == wholeTable());
  CHECK_THROWS_AS(e.merge(RegressionEvaluation(1)), InvalidArgument);
  CHECK_THROWS_AS(RegressionEvaluation(0), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(e.r2(2)), InvalidArgument);
  auto numbers = e.toNumbers();
  numbers.pop_back();
  CHECK_THROWS_AS(RegressionEvaluation::fromNumbers(numbers), InvalidArgument);
}

}  // namespace
}  // namespace muster::test
