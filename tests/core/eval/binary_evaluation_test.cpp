#include "muster/core/eval/binary_evaluation.h"

#include "tests/support/test.h"

namespace muster::test {
namespace {

// See evaluation_golden.py.
const Tensor kScores = Tensor::of({0.9f, 0.2f, 0.5f, 0.4f, 0.7f, 0.5f, 0.4f, 0.1f, 0.6f, 0.8f, 0.6f, 0.1f,
                                   0.3f, 0.9f, 0.2f, 0.6f, 0.6f, 0.7f},
                                  {6, 3});
const Tensor kTruth = Tensor::of({1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 1}, {6, 3});

BinaryEvaluation whole() {
  BinaryEvaluation e(3);
  e.add(kScores, kTruth);
  return e;
}

TEST_CASE("the scores of several labels equal scikit-learn's") {
  const BinaryEvaluation e = whole();
  CHECK(textOf(e.examples(), e.positives(2)) == "6 2");
  CHECK(digitsOf(15, e.accuracy(0), e.accuracy(1), e.accuracy()) ==
        digitsOf(15, 2.0 / 3, 5.0 / 6, 13.0 / 18));
  CHECK(digitsOf(15, e.precision(1), e.precision(2), e.recall(0), e.recall(1)) ==
        digitsOf(15, 0.75, 0.5, 2.0 / 3, 1));
  CHECK(digitsOf(15, e.f1(1), e.f1(), e.exactMatch()) ==
        digitsOf(15, 0.8571428571428571, 0.6746031746031745, 1.0 / 3));
  CHECK(digitsOf(15, e.auc(0), e.auc(1), e.auc(2), e.auc()) ==  // label 0 has equal predictions
        digitsOf(15, 0.8333333333333333, 0.9444444444444444, 0.8125, 0.8634259259259259));
  CHECK(digitsOf(15, e.averagePrecision(0), e.averagePrecision(1), e.averagePrecision(2),
                 e.averagePrecision()) ==
        digitsOf(15, 0.8666666666666667, 0.9166666666666665, 0.75, 0.8444444444444444));
  CHECK(e.summary().starts_with(
      "6 examples, 3 labels: accuracy 0.7222, AUC 0.8634, all labels right 0.3333\n"));
}

TEST_CASE("an evaluation of labels depends neither on the order nor on the batches") {
  const BinaryEvaluation e = whole();
  BinaryEvaluation backwards(3), masked(3), some(3);
  for (std::int64_t i = 5; i >= 0; --i) {
    BinaryEvaluation one(3);
    one.add(kScores.rows(i, i + 1), kTruth.rows(i, i + 1));
    backwards.merge(one);
  }
  CHECK(backwards == e);
  CHECK(backwards.auc() == e.auc());
  CHECK(BinaryEvaluation::fromNumbers(e.toNumbers()) == e);
  masked.add(kScores, kTruth, Tensor::of({0, 1, 0, 0, 0, 1}, {6}));
  some.add(kScores.rows(5, 6), kTruth.rows(5, 6));
  CHECK(masked != some);
  some.add(kScores.rows(1, 2), kTruth.rows(1, 2));
  CHECK(masked == some);
}

TEST_CASE("the mean of areas is over the labels that have one") {
  BinaryEvaluation e(2);
  CHECK(textOf(e.accuracy(), e.auc()) == "0 nan");
  e.add(Tensor::of({0.9f, 0.9f, 0.8f, 0.1f}, {2, 2}), Tensor::of({0, 1, 0, 0}, {2, 2}));
  CHECK(textOf(e.auc(0), e.averagePrecision(0), e.f1(0), e.auc(1), e.auc()) == "nan nan 0 1 1");
  CHECK_CONTAINS(e.summary(), " undefined  undefined\n");
  BinaryEvaluation none(1);
  none.add(Tensor::of({0.5f}, {1, 1}), Tensor::of({0}, {1, 1}));
  CHECK(none.summary().starts_with("1 example, 1 label: accuracy 1.0000, AUC undefined\n"));
}

TEST_CASE("one label is also given as classes, and others than 0 and 1 are refused") {
  BinaryEvaluation one(1), column(1);
  Tensor classes = Tensor::zeros({3}, DType::Int64);
  classes.data<std::int64_t>()[1] = 1;
  const Tensor predictions = Tensor::of({0.2f, 0.6f, 0.7f}, {3, 1});
  one.add(predictions, classes);
  column.add(predictions, Tensor::of({0, 1, 0}, {3, 1}));
  CHECK(one == column);
  CHECK(one.auc() == 0.5);
  classes.data<std::int64_t>()[2] = 2;
  CHECK_REFUSED(one.add(predictions, classes),
                "evaluation: a label of example 2 is 2, and expected is 0 or 1");
  CHECK_REFUSED(one.add(Tensor::of({kNan}, {1, 1}), Tensor::zeros({1, 1})),
                "evaluation: a prediction for example 0 is NaN");
  CHECK(one == column);
  CHECK_THROWS_AS(one.merge(BinaryEvaluation(2)), InvalidArgument);
  CHECK_THROWS_AS(BinaryEvaluation(0), InvalidArgument);
  const auto numbers = whole().toNumbers();
  for (const std::size_t i : {0u, 1u, 3u}) {
    auto others = numbers;
    others[i] = std::int64_t{1} << 40;
    CHECK_THROWS_AS(BinaryEvaluation::fromNumbers(others), InvalidArgument);
  }
}

}  // namespace
}  // namespace muster::test
