#include "muster/core/eval/evaluation.h"

#include "muster/core/base/random.h"
#include "muster/core/eval/non_finite_prediction.h"
#include "tests/support/batch_of.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using Counts = std::vector<std::int64_t>;
using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;  // (true class, predicted class)

Evaluation evaluated(std::int64_t classes, const Tensor& predictions, const Tensor& labels,
                     const Tensor& mask = {}) {
  Evaluation evaluation(classes);
  evaluation.add(predictions, labels, mask);
  return evaluation;
}

/// Predictions and labels that give each pair once.
std::pair<Tensor, Tensor> examplesOf(const Pairs& pairs, std::int64_t classes) {
  const auto n = std::ssize(pairs);
  Tensor predictions = Tensor::zeros({n, classes}), labels = Tensor::empty({n}, DType::Int64);
  for (std::int64_t i = 0; i < n; ++i) {
    labels.data<std::int64_t>()[i] = pairs[static_cast<std::size_t>(i)].first;
    predictions.data<float>()[i * classes + pairs[static_cast<std::size_t>(i)].second] = 1;
  }
  return {predictions, labels};
}

Evaluation evaluated(const Pairs& pairs, std::int64_t classes) {
  const auto [predictions, labels] = examplesOf(pairs, classes);
  return evaluated(classes, predictions, labels);
}

/// The matrix 2 1 0 / 0 1 1 / 1 1 3.
const Pairs kPairs{{0, 0}, {0, 0}, {0, 1}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}, {2, 2}, {2, 2}};

Evaluation example() {
  return evaluated(kPairs, 3);
}

TEST_CASE("each step of a sequence counts as an example unless a mask excludes it") {
  const auto [predictions, labels] = examplesOf(kPairs, 3);
  const Tensor steps = predictions.reshape({2, 5, 3});
  CHECK(evaluated(3, steps, labels.reshape({2, 5})) == example());
  const Tensor mask = Tensor::of({1, 1, 0, 1, 0, 1, 1, 1, 0, 0}, {10});
  const Evaluation masked = evaluated(3, steps, labels.reshape({2, 5}), mask.reshape({2, 5}));
  CHECK(masked == evaluated(3, predictions, labels, mask));
  CHECK(masked.examples() == 6);
  labels.data<std::int64_t>()[8] = 7;
  CHECK_REFUSED(evaluated(3, steps, labels.reshape({2, 5})),
                "evaluation: example 1, step 3 has label 7, but there are 3 classes");
  CHECK_REFUSED(
      evaluated(3, steps, labels),
      "evaluation: expected int64 labels [2, 5] or one-hot float32 labels [2, 5, 3], got int64 [10] on cpu");
}

TEST_CASE("scores equal those worked out by hand") {
  const Evaluation e = example();
  CHECK(e.confusionMatrix() == Counts{2, 1, 0, 0, 1, 1, 1, 1, 3});
  CHECK(textOf(e.examples(), e.count(2, 1), e.accuracy()) == "10 1 0.6");
  CHECK(digitsOf(6, e.precision(0), e.precision(1), e.precision(2), e.precision()) ==
        digitsOf(6, 2.0 / 3, 1.0 / 3, 3.0 / 4, 7.0 / 12));
  CHECK(digitsOf(6, e.recall(0), e.recall(1), e.recall(2), e.recall()) ==
        digitsOf(6, 2.0 / 3, 1.0 / 2, 3.0 / 5, 53.0 / 90));
  CHECK(digitsOf(6, e.f1(0), e.f1(1), e.f1(2), e.f1()) == digitsOf(6, 2.0 / 3, 2.0 / 5, 2.0 / 3, 26.0 / 45));
}

TEST_CASE("a ratio 0/0 is 0, and macro means are over classes that occur in the data or the predictions") {
  CHECK(textOf(Evaluation(2).accuracy(), Evaluation(2).f1()) == "0 0");
  const Evaluation none = evaluated({{0, 0}, {0, 0}}, 2);  // class 1 neither occurs nor is predicted
  CHECK(textOf(none.precision(1), none.recall(1), none.f1(1)) == "0 0 0");
  CHECK(textOf(none.precision(), none.recall(), none.f1()) == "1 1 1");
  // Class 1 is only predicted, class 2 only occurs, class 3 does neither: three classes are left, as in
  // scikit-learn's f1_score([0, 0, 2], [0, 1, 0], average="macro", zero_division=0).
  const Evaluation some = evaluated({{0, 0}, {0, 1}, {2, 0}}, 4);
  CHECK(digitsOf(6, some.precision(), some.recall(), some.f1()) == digitsOf(6, 0.5 / 3, 0.5 / 3, 0.5 / 3));
}

TEST_CASE("top-k accuracy counts ranks, and orders equal predictions by class") {
  //                        own class third      second               tied, first of two   tied, second of two
  const Tensor predictions =
      Tensor::of({.4f, .3f, .2f, .1f, .1f, .2f, .3f, .4f, .1f, .4f, .4f, .1f, .1f, .4f, .4f, .1f}, {4, 4});
  const Evaluation e = evaluated(4, predictions, integers({2, 2, 1, 2}));
  CHECK(textOf(e.accuracy(), e.topKAccuracy(2), e.topKAccuracy(3), e.topKAccuracy(100)) == "0.25 0.75 1 1");
  CHECK(e.count(2, 1) == 1);  // the tie went to the lower class
  CHECK_THROWS_AS(static_cast<void>(e.topKAccuracy(0)), InvalidArgument);
}

TEST_CASE("an evaluation accepts one-hot labels, masks, and one prediction for two classes") {
  const Tensor predictions = Tensor::of({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3});
  CHECK(evaluated(3, predictions, Tensor::of({1, 0, 0, 0, 0, 1, 0, 0, 1}, {3, 3})).confusionMatrix() ==
        Counts{1, 0, 0, 0, 0, 0, 0, 1, 1});
  // A masked example's label need not be valid.
  CHECK(evaluated(3, predictions, integers({0, 99, 1}), Tensor::of({1, 0, 0.5f}, {3})).confusionMatrix() ==
        Counts{1, 0, 0, 0, 0, 1, 0, 0, 0});
  const Tensor sigmoid = Tensor::of({0.2f, 0.5f, 0.6f, 0.9f}, {4, 1});
  const Evaluation binary = evaluated(2, sigmoid, integers({0, 1, 1, 0}));
  CHECK(binary.confusionMatrix() == Counts{1, 1, 1, 1});
  CHECK(binary.topKAccuracy(2) == 1);
  CHECK(evaluated(2, sigmoid, Tensor::of({0, 1, 1, 0}, {4, 1})) == binary);
}

TEST_CASE("an invalid batch is refused, and none of its examples is counted") {
  Evaluation e = example();
  const Tensor good = Tensor::of({1, 0, 0, 0, 1, 0}, {2, 3}), nan = Tensor::of({1, 0, 0, 0, kNan, 0}, {2, 3});
  const auto problem = [&](const Tensor& predictions, const Tensor& labels, const Tensor& mask = {}) {
    return thrown<InvalidArgument>([&] { e.add(predictions, labels, mask); });
  };
  CHECK(problem(good, integers({0, 3})) == "evaluation: example 1 has label 3, but there are 3 classes");
  CHECK(problem(good, integers({0, -1})) == "evaluation: example 1 has label -1, but there are 3 classes");
  for (const auto& second : {std::array{0.0f, 0.0f, 0.0f}, {1.0f, 1.0f, 0.0f}, {0.0f, 0.5f, 0.5f}})
    CHECK(problem(good, Tensor::of({1, 0, 0, second[0], second[1], second[2]}, {2, 3})) ==
          "evaluation: the label of example 1 is not one-hot");
  CHECK(problem(good, integers({0, 1, 2})) ==
        "evaluation: expected int64 labels [2] or one-hot float32 labels [2, 3], got int64 [3] on cpu");
  CHECK(problem(Tensor::zeros({2, 4}), integers({0, 1})) ==
        "evaluation: expected float32 predictions [N, 3] or [N, T, 3], got float32 [2, 4] on cpu");
  CHECK(problem(Tensor(), integers({})) ==
        "evaluation: expected float32 predictions [N, 3] or [N, T, 3], got an undefined tensor");
  CHECK(problem(good, integers({0, 1}), Tensor::zeros({3})) ==
        "evaluation: expected a float32 mask [2], got float32 [3] on cpu");
  CHECK(thrown<NonFinitePrediction>([&] {
          e.add(nan, integers({0, 1}));
        }) == "evaluation: a prediction for example 1 is NaN");
  CHECK(e == example());
  CHECK_THROWS_AS(e.merge(Evaluation(4)), InvalidArgument);
  CHECK_THROWS_AS(Evaluation(1), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(e.precision(3)), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(e.count(0, -1)), InvalidArgument);
}

TEST_CASE("the mean loss is computed from the true classes' probabilities") {
  CHECK(Evaluation(2).loss() == 0);
  const Evaluation e = evaluated(2, Tensor::of({.5f, .5f, .25f, .75f, 0, 1}, {3, 2}), integers({0, 0, 1}));
  CHECK(e.loss() == doctest::Approx((std::log(2) + std::log(4)) / 3).epsilon(1e-11));
  CHECK(evaluated(2, Tensor::of({0.5f, 0.75f, 1}, {3, 1}), integers({0, 0, 1})).loss() == e.loss());
  Evaluation surelyWrong = evaluated(2, Tensor::of({0, 1}, {1, 2}), integers({0}));
  CHECK(surelyWrong.loss() ==
        doctest::Approx(-std::log(double{std::numeric_limits<float>::min()})).epsilon(1e-11));
  // One prediction that is no probability leaves no loss, whatever is added later.
  surelyWrong.add(Tensor::of({-1, 1}, {1, 2}), integers({0}));
  surelyWrong.merge(e);
  CHECK(std::isnan(surelyWrong.loss()));
  CHECK(surelyWrong.summary().starts_with("5 examples, 2 classes: accuracy 0.4000\n"));
}

TEST_CASE("counts and the loss's bits are the same in any order of the examples and any batches") {
  constexpr std::int64_t kExamples = 5000, kClasses = 5;
  const RandomStream random(1, "losses");
  Tensor predictions = Tensor::empty({kExamples, kClasses}),
         labels = Tensor::empty({kExamples}, DType::Int64);
  double sum = 0;
  for (std::int64_t i = 0; i < kExamples; ++i) {
    // From likely to all but impossible: in float64 their sum would depend on the order.
    float* const p = predictions.data<float>() + kClasses * i;
    for (std::int64_t c = 0; c < kClasses; ++c)
      p[c] = static_cast<float>(std::pow(random.uniform(static_cast<std::uint64_t>(kClasses * i + c)), 9));
    labels.data<std::int64_t>()[i] = i * i % kClasses;
    sum -= std::log(double{p[i * i % kClasses]});
  }
  const Evaluation whole = evaluated(kClasses, predictions, labels);
  CHECK(whole.loss() == doctest::Approx(sum / kExamples).epsilon(1e-11));
  CHECK(whole.examples() == kExamples);
  for (const std::int64_t step : {1, 7, 1024}) {
    Evaluation backwards(kClasses);
    for (std::int64_t begin = (kExamples - 1) / step * step; begin >= 0; begin -= step) {
      const auto end = std::min(begin + step, kExamples);
      backwards.merge(evaluated(kClasses, predictions.rows(begin, end), labels.rows(begin, end)));
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
  for (const auto& wrong : {Counts{}, {1, 0, 0, 0, 0, 0, 0}, {-3, 0, 0, 0, 0, 1}})
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
  const std::string text = evaluated(Pairs(100, {11, 11}), 12).summary();
  CHECK(text.starts_with("100 examples, 12 classes: accuracy 1.0000, top-3 1.0000, loss 0.0000\n"));
  CHECK_CONTAINS(text, "\n             0   1   2   3   4   5   6   7   8   9  10  11\n");
  CHECK_CONTAINS(text, "\n        11   0   0   0   0   0   0   0   0   0   0   0 100\n");
  CHECK_CONTAINS(Evaluation(31).summary(), "not printed for 31 classes");
}

}  // namespace
}  // namespace muster::test
