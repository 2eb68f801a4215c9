#include "muster/core/eval/evaluation.h"

#include "muster/core/base/random.h"
#include "muster/core/eval/non_finite_prediction.h"
#include "tests/support/batch_of.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;  // (true class, predicted class)

/// Predictions and labels that give each pair once.
std::pair<Tensor, Tensor> examplesOf(const Pairs& pairs, std::int64_t classes) {
  const auto n = static_cast<std::int64_t>(pairs.size());
  Tensor predictions = Tensor::zeros({n, classes}), labels = Tensor::empty({n}, DType::Int64);
  for (std::int64_t i = 0; i < n; ++i) {
    labels.data<std::int64_t>()[i] = pairs[static_cast<std::size_t>(i)].first;
    predictions.data<float>()[i * classes + pairs[static_cast<std::size_t>(i)].second] = 1;
  }
  return {predictions, labels};
}

/// The matrix 2 1 0 / 0 1 1 / 1 1 3.
const Pairs kPairs{{0, 0}, {0, 0}, {0, 1}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}, {2, 2}, {2, 2}};

Evaluation example() {
  const auto [predictions, labels] = examplesOf(kPairs, 3);
  Evaluation evaluation(3);
  evaluation.add(predictions, labels);
  return evaluation;
}

}  // namespace

TEST_CASE("each step of a sequence counts as an example unless a mask excludes it") {
  const auto [predictions, labels] = examplesOf(kPairs, 3);
  Evaluation whole(3);
  whole.add(predictions.reshape({2, 5, 3}), labels.reshape({2, 5}));
  CHECK(whole == example());

  Evaluation masked(3), rows(3);
  const Tensor mask = Tensor::of({1, 1, 0, 1, 0, 1, 1, 1, 0, 0}, {10});
  masked.add(predictions.reshape({2, 5, 3}), labels.reshape({2, 5}), mask.reshape({2, 5}));
  rows.add(predictions, labels, mask);
  CHECK(masked == rows);
  CHECK(masked.examples() == 6);

  labels.data<std::int64_t>()[8] = 7;
  CHECK_REFUSED(masked.add(predictions.reshape({2, 5, 3}), labels.reshape({2, 5})),
                "evaluation: example 1, step 3 has label 7, but there are 3 classes");
  CHECK_REFUSED(
      masked.add(predictions.reshape({2, 5, 3}), labels),
      "evaluation: expected int64 labels [2, 5] or one-hot float32 labels [2, 5, 3], got int64 [10] on cpu");
}

TEST_CASE("scores equal those worked out by hand") {
  const Evaluation e = example();
  CHECK(e.confusionMatrix() == std::vector<std::int64_t>{2, 1, 0, 0, 1, 1, 1, 1, 3});
  CHECK(e.examples() == 10);
  CHECK(e.count(2, 1) == 1);
  CHECK(e.accuracy() == 0.6);
  CHECK(e.precision(0) == doctest::Approx(2.0 / 3));
  CHECK(e.precision(1) == doctest::Approx(1.0 / 3));
  CHECK(e.precision(2) == doctest::Approx(3.0 / 4));
  CHECK(e.recall(0) == doctest::Approx(2.0 / 3));
  CHECK(e.recall(1) == doctest::Approx(1.0 / 2));
  CHECK(e.recall(2) == doctest::Approx(3.0 / 5));
  CHECK(e.f1(0) == doctest::Approx(2.0 / 3));
  CHECK(e.f1(1) == doctest::Approx(2.0 / 5));
  CHECK(e.f1(2) == doctest::Approx(2.0 / 3));
  CHECK(e.precision() == doctest::Approx(7.0 / 12));
  CHECK(e.recall() == doctest::Approx(53.0 / 90));
  CHECK(e.f1() == doctest::Approx(26.0 / 45));
}

TEST_CASE("a ratio 0/0 is 0, and macro means are over classes that occur in the data or the predictions") {
  Evaluation none(2);
  CHECK(none.accuracy() == 0);
  CHECK(none.f1() == 0);
  const auto [predictions, labels] =
      examplesOf({{0, 0}, {0, 0}}, 2);  // class 1 neither occurs nor is predicted
  none.add(predictions, labels);
  CHECK(none.precision(1) == 0);
  CHECK(none.recall(1) == 0);
  CHECK(none.f1(1) == 0);
  CHECK(none.precision() == 1);
  CHECK(none.recall() == 1);
  CHECK(none.f1() == 1);
  // Class 1 is only predicted, class 2 only occurs, class 3 does neither: three classes are left, as in
  // scikit-learn's f1_score([0, 0, 2], [0, 1, 0], average="macro", zero_division=0).
  Evaluation some(4);
  const auto [guesses, truths] = examplesOf({{0, 0}, {0, 1}, {2, 0}}, 4);
  some.add(guesses, truths);
  CHECK(some.precision() == doctest::Approx(0.5 / 3));
  CHECK(some.recall() == doctest::Approx(0.5 / 3));
  CHECK(some.f1() == doctest::Approx(0.5 / 3));
}

TEST_CASE("top-k accuracy counts ranks, and orders equal predictions by class") {
  Evaluation e(4);
  //                        own class third      second               tied, first of two   tied, second of two
  const Tensor predictions =
      Tensor::of({.4f, .3f, .2f, .1f, .1f, .2f, .3f, .4f, .1f, .4f, .4f, .1f, .1f, .4f, .4f, .1f}, {4, 4});
  e.add(predictions, test::integers({2, 2, 1, 2}));
  CHECK(e.accuracy() == 0.25);
  CHECK(e.topKAccuracy(2) == 0.75);
  CHECK(e.topKAccuracy(3) == 1);
  CHECK(e.topKAccuracy(100) == 1);
  CHECK(e.count(2, 1) == 1);  // the tie went to the lower class
  CHECK_THROWS_AS(static_cast<void>(e.topKAccuracy(0)), InvalidArgument);
}

TEST_CASE("counts do not depend on the split into batches") {
  constexpr std::int64_t kExamples = 60, kClasses = 5;
  const RandomStream random(7, "evaluation");
  Tensor predictions = Tensor::empty({kExamples, kClasses}),
         labels = Tensor::empty({kExamples}, DType::Int64);
  for (std::int64_t i = 0; i < predictions.elements(); ++i)
    predictions.data<float>()[i] = static_cast<float>(random.below(static_cast<std::uint64_t>(i), 4));
  for (std::int64_t i = 0; i < kExamples; ++i)
    labels.data<std::int64_t>()[i] =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(1000 + i), 5));
  Evaluation whole(kClasses);
  whole.add(predictions, labels);
  for (const std::int64_t size : {1, 7, 59, 60}) {
    Evaluation first(kClasses), second(kClasses);
    for (std::int64_t begin = 0; begin < kExamples; begin += size) {
      const std::int64_t end = std::min(begin + size, kExamples);
      (begin / size % 2 == 0 ? first : second).add(predictions.rows(begin, end), labels.rows(begin, end));
    }
    first.merge(second);
    CHECK(first == whole);
  }
  CHECK(whole.examples() == kExamples);
}

TEST_CASE("an evaluation accepts one-hot labels, masks, and one prediction for two classes") {
  Evaluation oneHot(3);
  const Tensor predictions = Tensor::of({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3});
  oneHot.add(predictions, Tensor::of({1, 0, 0, 0, 0, 1, 0, 0, 1}, {3, 3}));
  CHECK(oneHot.confusionMatrix() == std::vector<std::int64_t>{1, 0, 0, 0, 0, 0, 0, 1, 1});

  Evaluation masked(3);  // a masked example's label need not be valid
  masked.add(predictions, test::integers({0, 99, 1}), Tensor::of({1, 0, 0.5f}, {3}));
  CHECK(masked.confusionMatrix() == std::vector<std::int64_t>{1, 0, 0, 0, 0, 1, 0, 0, 0});

  Evaluation binary(2);
  const Tensor sigmoid = Tensor::of({0.2f, 0.5f, 0.6f, 0.9f}, {4, 1});
  binary.add(sigmoid, test::integers({0, 1, 1, 0}));
  CHECK(binary.confusionMatrix() == std::vector<std::int64_t>{1, 1, 1, 1});
  CHECK(binary.topKAccuracy(2) == 1);
  Evaluation column(2);
  column.add(sigmoid, Tensor::of({0, 1, 1, 0}, {4, 1}));
  CHECK(column == binary);
}

TEST_CASE("an invalid batch is refused, and none of its examples is counted") {
  Evaluation e = example();
  const Evaluation before = e;
  const Tensor good = Tensor::of({1, 0, 0, 0, 1, 0}, {2, 3});
  const auto problem = [&](const Tensor& predictions, const Tensor& labels, const Tensor& mask = {}) {
    return test::thrown<InvalidArgument>([&] { e.add(predictions, labels, mask); });
  };
  CHECK(problem(good, test::integers({0, 3})) ==
        "evaluation: example 1 has label 3, but there are 3 classes");
  CHECK(problem(good, test::integers({0, -1})) ==
        "evaluation: example 1 has label -1, but there are 3 classes");
  CHECK(problem(good, Tensor::of({1, 0, 0, 0, 0, 0}, {2, 3})) ==
        "evaluation: the label of example 1 is not one-hot");
  CHECK(problem(good, Tensor::of({1, 0, 0, 1, 1, 0}, {2, 3})) ==
        "evaluation: the label of example 1 is not one-hot");
  CHECK(problem(good, Tensor::of({1, 0, 0, 0, .5f, .5f}, {2, 3})) ==
        "evaluation: the label of example 1 is not one-hot");
  CHECK(problem(good, test::integers({0, 1, 2})) ==
        "evaluation: expected int64 labels [2] or one-hot float32 labels [2, 3], got int64 [3] on cpu");
  CHECK(problem(Tensor::zeros({2, 4}), test::integers({0, 1})) ==
        "evaluation: expected float32 predictions [N, 3] or [N, T, 3], got float32 [2, 4] on cpu");
  CHECK(problem(Tensor(), test::integers({})) ==
        "evaluation: expected float32 predictions [N, 3] or [N, T, 3], got an undefined tensor");
  CHECK(problem(good, test::integers({0, 1}), Tensor::zeros({3})) ==
        "evaluation: expected a float32 mask [2], got float32 [3] on cpu");
  CHECK(problem(Tensor::of({1, 0, 0, 0, test::kNan, 0}, {2, 3}), test::integers({0, 1})) ==
        "evaluation: a prediction for example 1 is NaN");
  CHECK_THROWS_AS(e.add(Tensor::of({test::kNan, 0, 0}, {1, 3}), test::integers({0})), NonFinitePrediction);
  CHECK(e == before);
  CHECK_THROWS_AS(e.merge(Evaluation(4)), InvalidArgument);
  CHECK_THROWS_AS(Evaluation(1), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(e.precision(3)), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(e.count(0, -1)), InvalidArgument);
}

TEST_CASE("the mean loss is computed from the true classes' probabilities") {
  Evaluation e(2);
  CHECK(e.loss() == 0);
  e.add(Tensor::of({0.5f, 0.5f, 0.25f, 0.75f, 0, 1}, {3, 2}), test::integers({0, 0, 1}));
  CHECK(e.loss() == doctest::Approx((std::log(2) + std::log(4)) / 3).epsilon(1e-11));
  Evaluation sigmoid(2);
  sigmoid.add(Tensor::of({0.5f, 0.75f, 1}, {3, 1}), test::integers({0, 0, 1}));
  CHECK(sigmoid.loss() == e.loss());
  Evaluation surelyWrong(2);
  surelyWrong.add(Tensor::of({0, 1}, {1, 2}), test::integers({0}));
  CHECK(surelyWrong.loss() ==
        doctest::Approx(-std::log(double{std::numeric_limits<float>::min()})).epsilon(1e-11));
  // One prediction that is no probability leaves no loss, whatever is added later.
  surelyWrong.add(Tensor::of({-1, 1}, {1, 2}), test::integers({0}));
  surelyWrong.merge(e);
  CHECK(std::isnan(surelyWrong.loss()));
  CHECK(surelyWrong.summary().starts_with("5 examples, 2 classes: accuracy 0.4000\n"));
}

TEST_CASE("the loss has the same bits in any order of the examples and any batches") {
  constexpr std::int64_t kExamples = 5000;
  const RandomStream random(1, "losses");
  Tensor predictions = Tensor::empty({kExamples, 2}), labels = Tensor::zeros({kExamples}, DType::Int64);
  double sum = 0;
  for (std::int64_t i = 0; i < kExamples; ++i) {
    // From likely to all but impossible: in float64 their sum would depend on the order.
    const auto p = static_cast<float>(std::pow(random.uniform(static_cast<std::uint64_t>(i)), 9));
    predictions.data<float>()[2 * i] = p;
    predictions.data<float>()[2 * i + 1] = 1 - p;
    sum -= std::log(double{p});
  }
  Evaluation whole(2);
  whole.add(predictions, labels);
  CHECK(whole.loss() == doctest::Approx(sum / kExamples).epsilon(1e-11));
  for (const std::int64_t step : {1, 7, 1024}) {
    Evaluation backwards(2);
    for (std::int64_t begin = (kExamples - 1) / step * step; begin >= 0; begin -= step) {
      const auto end = std::min(begin + step, kExamples);
      Evaluation part(2);
      part.add(predictions.rows(begin, end), labels.rows(begin, end));
      backwards.merge(part);
    }
    CHECK(backwards == whole);
    CHECK(backwards.loss() == whole.loss());
  }
}

TEST_CASE("an evaluation is written as numbers, and restored from them") {
  const Evaluation all = example();
  const auto numbers = all.toNumbers();
  CHECK(numbers.size() == 5 + 3 * 3 + 3);
  CHECK(Evaluation::fromNumbers(numbers) == all);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i == 4) continue;  // yes or no
    auto others = numbers;
    others[i] += 1;
    if (i == 0)
      CHECK_REFUSED(Evaluation::fromNumbers(others), "evaluation: these 17 numbers are none");
    else
      CHECK(Evaluation::fromNumbers(others) != all);
  }
  for (const auto& wrong : {std::vector<std::int64_t>{}, {1, 0, 0, 0, 0, 0, 0}, {-3, 0, 0, 0, 0, 1}})
    CHECK_THROWS_AS(Evaluation::fromNumbers(wrong), InvalidArgument);
}

TEST_CASE("the summary's tables line up") {
  CHECK(example().summary() == R"(10 examples, 3 classes: accuracy 0.6000, loss 34.9346

     class   examples  precision     recall         F1
         0          3     0.6667     0.6667     0.6667
         1          2     0.3333     0.5000     0.4000
         2          5     0.7500     0.6000     0.6667
macro mean         10     0.5833     0.5889     0.5778

confusion matrix (rows: true class, columns: predicted class)
           0 1 2
         0 2 1 0
         1 0 1 1
         2 1 1 3
)");
  Evaluation wide(12);
  const auto [predictions, labels] = examplesOf({{11, 11}}, 12);
  for (int i = 0; i < 100; ++i) wide.add(predictions, labels);
  const std::string text = wide.summary();
  CHECK(text.starts_with("100 examples, 12 classes: accuracy 1.0000, top-3 1.0000, loss 0.0000\n"));
  CHECK_CONTAINS(text, "\n             0   1   2   3   4   5   6   7   8   9  10  11\n");
  CHECK_CONTAINS(text, "\n        11   0   0   0   0   0   0   0   0   0   0   0 100\n");
  CHECK_CONTAINS(Evaluation(31).summary(), "not printed for 31 classes");
}

}  // namespace muster
