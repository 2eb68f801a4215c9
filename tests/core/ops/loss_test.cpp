#include "muster/core/ops/loss.h"

#include <numeric>

#include "tests/core/ops/test.h"
#include "tests/support/reference_ops.h"

namespace muster {
namespace {

using test::Array;
namespace reference = test::reference;

Tensor classTensor(const Array& labels) {
  Tensor tensor = Tensor::empty(labels.shape, DType::Int64);
  for (std::size_t n = 0; n < labels.values.size(); ++n)
    tensor.data<std::int64_t>()[n] = static_cast<std::int64_t>(labels.values[n]);
  return tensor;
}

/// Compares value and gradient with the reference, also in place.
template <typename Where>
void checkAgainstReference(Loss kind, const Array& predictions, const Array& labels, const Array& mask,
                           bool masked, double normaliser, test::Place<Where>& on) {
  Context& context = on.context;
  const Tensor labelTensor = labels.shape.rank() == 1 ? on(classTensor(labels)) : on(labels);
  const Tensor maskTensor = masked ? on(mask) : Tensor();
  const double weight = std::accumulate(mask.values.begin(), mask.values.end(), 0.0);
  const Array each = reference::losses(kind, predictions, labels);
  double sum = 0;
  for (std::int64_t n = 0; n < mask.shape[0]; ++n) sum += mask.at(n) * each.at(n);

  Tensor gradient = on.nan(predictions.shape), none;
  const Tensor input = on(predictions);
  const LossValue value = loss(kind, input, labelTensor, maskTensor, gradient, normaliser, context);
  CHECK(value.sum == doctest::Approx(sum).epsilon(1e-10));  // up to 6002 terms in float64, each up to 10
  CHECK(value.weight == doctest::Approx(weight).epsilon(1e-12));
  const Array expected =
      reference::lossGradient(kind, predictions, labels, mask, normaliser != 0 ? normaliser : weight);
  CHECK(test::maxError(gradient, expected) < test::roundings(1));  // float64, and one rounding to float32

  CHECK(loss(kind, input, labelTensor, maskTensor, none, normaliser, context).sum == value.sum);
  Tensor inPlace = cloneTensor(input);
  CHECK(loss(kind, inPlace, labelTensor, maskTensor, inPlace, normaliser, context).sum == value.sum);
  CHECK(test::sameBits(inPlace, gradient));

  // The result stays on the device, and the normaliser is read there.
  Tensor again = on.nan(predictions.shape), divisor = Tensor::empty({1}, DType::Float64);
  Tensor numbers = on(Tensor::zeros({kLossNumbers}, DType::Float64));
  divisor.data<double>()[0] = normaliser;
  lossInto(kind, input, labelTensor, maskTensor, again, on(divisor), numbers, context);
  const Tensor read = on.get(numbers);
  const LossValue later = lossValue({read.template data<double>(), kLossNumbers}, predictions.shape);
  CHECK(later.sum == value.sum);
  CHECK(later.weight == value.weight);
  CHECK(test::sameBits(again, gradient));
}

TEST_ON_DEVICES("losses and gradients agree with the reference") {
  test::Place<Where> on;
  std::mt19937_64 random(test::freshSeed());
  for (const auto& [kind, name] : EnumNames<Loss>::kNames)
    // Rows of more than 1024 classes are computed in blocks.
    for (const Shape& shape :
         {Shape{1, 1}, Shape{7, 10}, Shape{130, 3}, Shape{3001, 2}, Shape{9, 101}, Shape{2, 2100}})
      for (double normaliser : {0.0, 256.0})
        for (bool masked : {false, true}) {
          INFO(name, ", ", shape.toString(), ", masked ", masked);
          const auto predictions = test::randomArray(shape, random, -5, 5);
          Array mask({shape[0]});
          for (double& weight : mask.values) weight = masked ? random() % 3 / 2.0 : 1.0;
          mask.values[0] = 1;
          checkAgainstReference(kind, predictions, test::randomArray(shape, random, 0, 1), mask, masked,
                                normaliser, on);
          if (kind != Loss::NegativeLogLikelihood) continue;
          Array classes({shape[0]});
          for (double& label : classes.values)
            label = static_cast<double>(random() % static_cast<std::uint64_t>(shape[1]));
          checkAgainstReference(kind, predictions, classes, mask, masked, normaliser, on);
        }
}

TEST_CASE("losses equal values worked out by hand") {
  Context context;
  Tensor gradient = Tensor::empty({1, 2});
  const auto of = [&](const LossRule& rule, std::vector<float> z, std::vector<float> labels) {
    return loss(rule, Tensor::of(z, {1, 2}), Tensor::of(labels, {1, 2}), {}, gradient, 0, context).sum;
  };
  // Two equal logits: ln 2 a row.
  CHECK(loss(Loss::NegativeLogLikelihood, Tensor::of({3, 3}, {1, 2}), classTensor({{1}, {1}}), {}, gradient,
             0, context)
            .sum == doctest::Approx(std::log(2.0)));
  CHECK(of(Loss::MeanSquaredError, {1, 2}, {0, 4}) == doctest::Approx(2.5));   // ((1-0)^2 + (2-4)^2) / 2
  CHECK(of(Loss::MeanAbsoluteError, {1, 2}, {0, 4}) == doctest::Approx(1.5));  // (|1-0| + |2-4|) / 2
  CHECK(of(Loss::BinaryCrossEntropy, {0, 0}, {1, 0}) ==
        doctest::Approx(std::log(2.0)));  // logit 0: ln 2 each
  // Distances 1 and 4, delta 2: 1/2, and 2 (4 - 1).
  CHECK(of({Loss::Huber, 2}, {1, 0}, {0, 4}) == doctest::Approx(3.25));
  CHECK(test::floatsOf(gradient) == std::vector{0.5f, -1.0f});
}

TEST_ON_DEVICES("smoothed labels are mixed with equal shares") {
  test::Place<Where> on;
  // softmax(0, 0, ln 2) = 1/4, 1/4, 1/2; class 0 smoothed by 0.3 has the shares 0.8, 0.1, 0.1:
  // 0.9 ln 4 + 0.1 ln 2 = 1.9 ln 2.
  const Tensor logits = on(Tensor::of({0, 0, static_cast<float>(std::log(2.0))}, {1, 3}));
  for (const Tensor& labels : {on(classTensor({{1}, {0}})), on(Tensor::of({1, 0, 0}, {1, 3}))}) {
    Tensor gradient = on.nan({1, 3});
    const auto value =
        loss({Loss::NegativeLogLikelihood, 1, 0.3}, logits, labels, {}, gradient, 0, on.context);
    CHECK(value.sum == doctest::Approx(1.9 * std::log(2.0)).epsilon(1e-6));
    CHECK(test::maxError(gradient, Array({1, 3}, {0.25 - 0.8, 0.25 - 0.1, 0.5 - 0.1})) < 1e-6);
  }
}

TEST_ON_DEVICES("one logit takes classes 0 and 1") {
  test::Place<Where> on;
  // sigmoid(ln 3) = 3/4, against 1, 0, and a row of weight 0.
  const auto logit = static_cast<float>(std::log(3.0));
  const Tensor logits = on(Tensor::of({logit, logit, logit}, {3, 1}));
  const Tensor mask = on(Tensor::of({1, 1, 0}, {3}));
  Tensor gradient = on(test::nanTensor({3, 1}));
  const auto of = [&](const Array& labels) {
    return loss(Loss::BinaryCrossEntropy, logits, on(classTensor(labels)), mask, gradient, 0, on.context);
  };
  CHECK(of({{3}, {1, 0, 7}}).sum == doctest::Approx(std::log(4.0 / 3) + std::log(4.0)).epsilon(1e-6));
  CHECK(test::maxError(gradient, Array({3, 1}, {-0.125, 0.375, 0})) < 1e-6);
  for (const double label : {2, -1})
    CHECK_REFUSED(of({{3}, {1, label, 0}}),
                  fmt::format("loss: the label of row 1 is {}, expected 0 to 1", label));
  CHECK_THROWS_AS(loss(Loss::BinaryCrossEntropy, on(Tensor::zeros({2, 2})), on(classTensor({{2}, {0, 1}})),
                       {}, gradient, 0, on.context),
                  InvalidArgument);
}

TEST_CASE("a loss of one's own is weighted by the mask, and leaves rows of weight 0 alone") {
  struct Cubed final : OwnLoss {
    double ofRow(std::span<const float> z, std::span<const float> y,
                 std::span<float> gradient) const override {
      const double d = std::abs(z[0] - y[0]);
      if (!gradient.empty()) gradient[0] = static_cast<float>(3 * d * d * (z[0] > y[0] ? 1 : -1));
      return d * d * d;
    }
  };
  Context context;
  Tensor gradient = test::nanTensor({3, 1});
  // Weights 1, 0 and 3; distances 2 and 1: 8 + 3, and gradients 12 / 4 and -3 3 / 4.
  const auto value = loss(Cubed(), Tensor::of({2, NAN, 0}, {3, 1}), Tensor::of({0, NAN, 1}, {3, 1}),
                          Tensor::of({1, 0, 3}, {3}), gradient, 0, context);
  CHECK(value.sum == 11);
  CHECK(value.weight == 4);
  CHECK(test::maxError(gradient, Array({3, 1}, {3, 0, -2.25})) == 0);
}

TEST_CASE("large logits neither overflow nor lose the loss") {
  Context context;
  Tensor gradient = test::nanTensor({1, 2});
  const Tensor logits = Tensor::of({-1000, 1000}, {1, 2});
  CHECK(loss(Loss::NegativeLogLikelihood, logits, classTensor({{1}, {0}}), {}, gradient, 0, context).sum ==
        2000);
  CHECK(test::floatsOf(gradient) == std::vector{-1.0f, 1.0f});
  CHECK(loss(Loss::BinaryCrossEntropy, logits, Tensor::of({1, 0}, {1, 2}), {}, gradient, 0, context).sum ==
        1000);
  CHECK(test::floatsOf(gradient) == std::vector{-0.5f, 0.5f});
}

TEST_CASE("the binary cross entropy of certain and right predictions keeps its digits") {
  Context context;
  Tensor none, logits = Tensor::empty({1, 700}), labels = Tensor::empty({1, 700});
  for (std::int64_t f = 0; f < 700; ++f) {
    labels.data<float>()[f] = static_cast<float>(f % 2);
    logits.data<float>()[f] = f % 2 == 1 ? 50.0f : -50.0f;
  }
  // Compared as a ratio, because doctest's tolerance is absolute below 1.
  const double value = loss(Loss::BinaryCrossEntropy, logits, labels, {}, none, 0, context).sum;
  CHECK(value / std::exp(-50.0) == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("sixteen rows of few classes at a time have the bits of each row alone") {
  // With additional classes of probability 0, the same rows use the kernel for many classes.
  Context context;
  std::mt19937_64 random(test::freshSeed());
  for (const std::int64_t classes : {1, 2, 10, 16})
    for (const std::int64_t rows : {1, 15, 16, 50})
      for (const bool masked : {false, true}) {
        INFO("classes ", classes, ", rows ", rows, ", masked ", masked);
        constexpr std::int64_t kMany = 40;
        const auto logits = test::randomArray({rows, classes}, random, -50, 50);
        Array padded({rows, kMany}), labels({rows}), mask({rows});
        std::ranges::fill(padded.values, -1e30);
        for (std::int64_t n = 0; n < rows; ++n) {
          std::copy_n(logits.values.begin() + n * classes, classes, padded.values.begin() + n * kMany);
          labels.values[n] = static_cast<double>(random() % static_cast<std::uint64_t>(classes));
          mask.values[n] = masked ? static_cast<double>(random() % 3) / 2 : 1;
        }
        Tensor few = test::nanTensor({rows, classes}), many = test::nanTensor({rows, kMany});
        const auto sumOf = [&](const Array& rowsOfLogits, Tensor& gradient) {
          return loss(Loss::NegativeLogLikelihood, test::toTensor(rowsOfLogits), classTensor(labels),
                      masked ? test::toTensor(mask) : Tensor(), gradient, 64, context)
              .sum;
        };
        CHECK(sumOf(logits, few) == sumOf(padded, many));
        for (std::int64_t n = 0; n < rows; ++n)
          CHECK(std::equal(few.data<float>() + n * classes, few.data<float>() + (n + 1) * classes,
                           many.data<float>() + n * kMany));
      }
}

TEST_CASE("a row of weight 0 does not count, whatever it contains") {
  Context context;
  Tensor gradient = test::nanTensor({2, 2});
  const auto value = loss(Loss::NegativeLogLikelihood, Tensor::of({1, 1, test::kNan, test::kNan}, {2, 2}),
                          classTensor({{2}, {0, 0}}), Tensor::of({1, 0}, {2}), gradient, 0, context);
  CHECK(value.weight == 1);
  CHECK(value.sum == doctest::Approx(std::log(2.0)));
  CHECK(test::maxError(gradient, Array({2, 2}, {-0.5, 0.5, 0, 0})) < 1e-7);
  // A value that counts is not hidden.
  Tensor none;
  CHECK(std::isnan(loss(Loss::NegativeLogLikelihood, Tensor::of({test::kNan, 1}, {1, 2}),
                        classTensor({{1}, {1}}), {}, none, 0, context)
                       .sum));
  const auto nothing = loss(Loss::MeanSquaredError, Tensor::of({1, 2}, {1, 2}), Tensor::of({0, 0}, {1, 2}),
                            Tensor::of({0}, {1}), gradient = test::nanTensor({1, 2}), 0, context);
  CHECK(nothing.weight == 0);
  CHECK(nothing.sum == 0);
  CHECK(test::maxError(gradient, Array({1, 2})) == 0);
}

TEST_CASE("in a sequence every step is a row, and the normaliser is the number of unmasked steps") {
  std::mt19937_64 random(test::freshSeed());
  Context context;
  constexpr std::int64_t kExamples = 3, kSteps = 5, kClasses = 4;
  const auto logits = test::toTensor(test::randomArray({kExamples * kSteps, kClasses}, random, -5, 5));
  Array labels({kExamples * kSteps});
  for (double& label : labels.values) label = static_cast<double>(random() % 4);
  labels.values[14] = -1;  // padding may hold any label
  const Tensor classes = classTensor(labels);
  const Tensor soft = test::toTensor(test::randomArray({kExamples * kSteps, kClasses}, random, 0, 1));
  const Tensor mask = Tensor::of({1, 1, 1, 1, 1, /**/ 1, 1, 1, 0, 0, /**/ 0, 1, 0, 1, 0}, {15});
  for (const bool indices : {true, false}) {
    Tensor flat = test::nanTensor({kExamples * kSteps, kClasses});
    Tensor gradient = test::nanTensor({kExamples, kSteps, kClasses});
    const auto expected =
        loss(Loss::NegativeLogLikelihood, logits, indices ? classes : soft, mask, flat, 0, context);
    const auto value =
        loss(Loss::NegativeLogLikelihood, logits.reshape(gradient.shape()),
             indices ? classes.reshape({kExamples, kSteps}) : soft.reshape({kExamples, kSteps, kClasses}),
             mask.reshape({kExamples, kSteps}), gradient, 0, context);
    CHECK(value.weight == 10);
    CHECK(value.sum == expected.sum);
    CHECK(test::sameBits(gradient.reshape(flat.shape()), flat));
  }
  Tensor none;
  CHECK_REFUSED(loss(Loss::NegativeLogLikelihood, logits.reshape({kExamples, kSteps, kClasses}),
                     classes.reshape({kExamples, kSteps}), {}, none, 0, context),
                "loss: the label of example 2, step 4 is -1, expected 0 to 3");
}

TEST_ON_DEVICES("an invalid mask is refused: negative or not finite") {
  Context context(Where::device());
  Tensor none;
  const Tensor logits = Tensor::zeros({2, 3}, DType::Float32, Where::device());
  const Tensor labels = copyTo(classTensor({{2}, {0, 1}}), Where::device());
  const auto sentence = [&](float first, float second) {
    const Tensor mask = copyTo(Tensor::of({first, second}, {2}), Where::device());
    return test::thrown<InvalidArgument>(
        [&] { loss(Loss::NegativeLogLikelihood, logits, labels, mask, none, 0, context); });
  };
  for (const float bad : {test::kNan, -test::kNan, -1.0f, -3.0f, test::kInfinity, -test::kInfinity}) {
    CAPTURE(bad);
    CHECK_FALSE(sentence(1, bad).empty());
    CHECK_FALSE(sentence(-bad, bad).empty());  // the sum may be anything
  }
  CHECK(sentence(0, 0) == "");
  CHECK(sentence(0.5, 3) == "");
  if (Where::device().isCpu())
    CHECK(sentence(1, -test::kNan) == "loss: the mask of row 1 is nan; it must be finite and at least 0");
  for (const double weight : {-1.0, double{test::kNan}, double{test::kInfinity}}) {
    const double numbers[] = {1, weight, -1, 0};
    CHECK_REFUSED(lossValue(numbers, {2, 3}), "loss: a value of the mask is negative or not finite");
  }
}

TEST_ON_DEVICES("a class out of range is reported with its row, also when found later") {
  Context context(Where::device());
  Tensor none;
  const Tensor logits = Tensor::zeros({3, 4}, DType::Float32, Where::device());
  const auto sentence = [&](const Array& classes) {
    return test::thrown<InvalidArgument>([&] {
      loss(Loss::NegativeLogLikelihood, logits, copyTo(classTensor(classes), Where::device()), {}, none, 0,
           context);
    });
  };
  CHECK(sentence({{3}, {0, 4, -7}}) == "loss: the label of row 1 is 4, expected 0 to 3");
  CHECK(sentence({{3}, {3, 0, -7}}) == "loss: the label of row 2 is -7, expected 0 to 3");
  CHECK(sentence({{3}, {3, 0, 2}}) == "");
  // Of several bad rows (a GPU splits rows among blocks), the first one is reported, but no row of weight 0.
  Array many({20000});
  for (const std::size_t row : {700, 9123, 17000}) many.values[row] = -1.0 - static_cast<double>(row);
  Tensor mask = Tensor::empty({20000});
  std::ranges::fill(mask.span<float>(), 1.0f);
  mask.data<float>()[700] = 0;
  const Tensor zeros = Tensor::zeros({20000, 2}, DType::Float32, Where::device());
  CHECK_REFUSED(loss(Loss::NegativeLogLikelihood, zeros, copyTo(classTensor(many), Where::device()),
                     copyTo(mask, Where::device()), none, 0, context),
                "loss: the label of row 9123 is -9124, expected 0 to 1");
  const double late[] = {test::kNan, 6, 4, 9};
  CHECK_REFUSED(lossValue(late, {2, 3, 5}), "loss: the label of example 1, step 1 is 9, expected 0 to 4");
}

TEST_CASE("labels and tensors that do not fit are refused by name") {
  Context context;
  const Tensor z = Tensor::zeros({2, 3}), classes = classTensor({{2}, {0, 1}});
  const auto refusal = [&](Loss kind, const Tensor& predictions, const Tensor& labels,
                           const Tensor& mask = {}, Tensor gradient = {}) {
    return test::thrown<InvalidArgument>(
        [&] { loss(kind, predictions, labels, mask, gradient, 0, context); });
  };
  constexpr auto kNll = Loss::NegativeLogLikelihood, kSquares = Loss::MeanSquaredError;
  CHECK(refusal(kNll, z, classTensor({{2}, {0, 3}})) == "loss: the label of row 1 is 3, expected 0 to 2");
  CHECK_FALSE(refusal(kNll, z, classTensor({{2}, {-1, 0}})).empty());
  CHECK_FALSE(refusal(kNll, z, classTensor({{3}, {0, 0, 0}})).empty());
  for (const Tensor& labels : {classes, Tensor::zeros({3, 2}), Tensor()})
    CHECK_FALSE(refusal(kSquares, z, labels).empty());
  CHECK_FALSE(refusal(kSquares, z, z, Tensor::zeros({3})).empty());
  CHECK_FALSE(refusal(kSquares, z, z, {}, Tensor::zeros({2, 2})).empty());
  CHECK_FALSE(refusal(kSquares, Tensor::zeros({2}), z).empty());
}

}  // namespace
}  // namespace muster
