#include "muster/core/ops/activation.h"

#include "tests/core/ops/test.h"
#include "tests/support/reference_ops.h"

namespace muster {
namespace {

using test::Array;
namespace reference = test::reference;

/// `exp`, `tanh` and the normal distribution function are accurate to two units in the last place, which is
/// four roundings; up to three follow. A softmax also sums its channels, the largest of which is 1, and
/// divides.
double toleranceOf(Activation kind, const Shape& shape) {
  return test::roundings(kind == Activation::Softmax ? 8 + static_cast<double>(shape[1]) : 7);
}

TEST_ON_DEVICES("activations agree with the reference over layouts and threads, also in place") {
  std::mt19937_64 random(test::freshSeed());
  // The last shape is above the grain size, so threads share it.
  const Shape shapes[] = {{1, 1, 1, 1}, {17, 5, 3, 2}, {3, 20, 4, 4}, {33, 17, 5, 5}, {9, 10}};
  for (const auto& [kind, name] : EnumNames<Activation>::kNames)
    for (const Shape& shape : shapes)
      for (Layout layout : Where::layouts())
        for (const int threads : test::threadCounts<Where>({1, 3})) {
          if ((kind == Activation::Softmax || shape.rank() == 2) && layout != Layout::RowMajor) continue;
          INFO(name, ", ", shape.toString(), ", ", nameOf(layout), ", threads ", threads);
          test::Place<Where> on(threads);
          const Array x = test::randomArray(shape, random, -6, 6), gradY = test::randomArray(shape, random);
          const Tensor input = on(x, layout), grad = on(gradY, layout);
          Tensor y = on.nan(shape, layout), gradX = on.nan(shape, layout);
          activationForward(kind, input, y, on.context);
          activationBackward(kind, kind == Activation::GELU ? input : Tensor(), y, grad, gradX, on.context);
          const double tolerance = toleranceOf(kind, shape);
          CHECK(test::maxError(on.get(y), reference::activation(kind, x)) < tolerance);
          // A derivative uses the output twice.
          CHECK(test::maxError(gradX, reference::activationBackward(kind, x, gradY)) < 2 * tolerance);
          CHECK(test::paddingIsZero(y));
          CHECK(test::paddingIsZero(gradX));
          Tensor inPlace = cloneTensor(input), gradInPlace = cloneTensor(grad);
          activationForward(kind, inPlace, inPlace, on.context);
          activationBackward(kind, input, y, gradInPlace, gradInPlace, on.context);
          CHECK(test::sameBits(on.get(inPlace), y));
          CHECK(test::sameBits(gradInPlace, gradX));
        }
}

TEST_CASE("softmax of a sequence is computed over the features of each step") {
  Context context;
  const Tensor x = test::toTensor(test::Array({2, 3, 2}, {1, 2, -1, 4, 0, 0, 3, 1, 2, 2, -5, 5}));
  Tensor y = test::nanTensor({2, 3, 2}), rows = test::nanTensor({6, 2});
  activationForward(Activation::Softmax, x, y, context);
  activationForward(Activation::Softmax, x.reshape({6, 2}), rows, context);
  CHECK(test::sameBits(y.reshape({6, 2}), rows));
  Tensor gradX = test::nanTensor({2, 3, 2});
  activationBackward(Activation::Softmax, x, y, x, gradX, context);
  activationBackward(Activation::Softmax, x, rows, x.reshape({6, 2}), rows, context);
  CHECK(test::sameBits(gradX.reshape({6, 2}), rows));
}

TEST_CASE("softmax does not overflow") {
  Context context;
  const Tensor x = Tensor::of({1000, 1000, -1000, 0, -2000, -2000}, {2, 3});
  Tensor y = test::nanTensor({2, 3});
  activationForward(Activation::Softmax, x, y, context);
  CHECK(test::maxError(y, Array({2, 3}, {0.5, 0.5, 0, 1, 0, 0})) == 0);
}

TEST_CASE("activations pass NaN on") {
  Context context;
  for (auto kind : {Activation::ReLU, Activation::LeakyReLU, Activation::Tanh, Activation::Sigmoid}) {
    Tensor y = Tensor::zeros({1});
    activationForward(kind, Tensor::of({test::kNan}, {1}), y, context);
    CHECK(std::isnan(y.data<float>()[0]));
  }
}

TEST_CASE("tanh and sigmoid are accurate to a few units in the last place for all magnitudes") {
  Context context;
  std::vector<float> values;
  for (double magnitude = 1e-30; magnitude < 200; magnitude *= 1.003)
    for (double sign : {-1.0, 1.0}) values.push_back(static_cast<float>(sign * magnitude));
  const auto count = static_cast<std::int64_t>(values.size());
  const Tensor x = Tensor::of(values, {count});
  for (auto kind : {Activation::Tanh, Activation::Sigmoid}) {
    Tensor y = test::nanTensor({count});
    activationForward(kind, x, y, context);
    const Array expected = reference::activation(kind, test::toArray(x));
    double worst = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const double error = std::abs(y.data<float>()[i] - expected.at(i));
      // Sigmoid's lower end fades into denormals.
      if (expected.at(i) != 0) worst = std::max(worst, (error - 1.3e-38) / std::abs(expected.at(i)));
    }
    CHECK(worst < 3.6e-7);
  }
}

TEST_CASE("the derivative at 0 is that of the negative side") {
  Context context;
  for (const auto& [kind, slope] :
       {std::pair(Activation::ReLU, 0.0f), {Activation::LeakyReLU, kLeakySlope}}) {
    Tensor gradX = test::nanTensor({1});
    activationBackward(kind, {}, Tensor::zeros({1}), Tensor::of({5}, {1}), gradX, context);
    CHECK(gradX.data<float>()[0] == 5 * slope);
  }
}

TEST_CASE("activations refuse tensors that do not fit") {
  Context context;
  Tensor x = Tensor::zeros({2, 3}), y = Tensor::zeros({3, 2}), counts = Tensor::zeros({2, 3}, DType::Int64);
  CHECK_REFUSED(activationForward(Activation::ReLU, x, y, context),
                "activation: y is float32 [3, 2] on cpu, expected float32 [2, 3] on cpu");
  CHECK_THROWS_AS(activationForward(Activation::ReLU, counts, counts, context), InvalidArgument);
  CHECK_THROWS_AS(activationForward(Activation::ReLU, {}, y, context), InvalidArgument);
  Tensor row = Tensor::zeros({3});
  CHECK_THROWS_AS(activationForward(Activation::Softmax, row, row, context), InvalidArgument);
  Tensor blocks = Tensor::zeros({2, 3, 4, 4}, DType::Float32, Device::cpu(), Layout::ChannelsLast);
  CHECK_THROWS_AS(activationForward(Activation::Softmax, blocks, blocks, context), InvalidArgument);
  // GELU's derivative needs x, the others need y.
  CHECK_THROWS_AS(activationBackward(Activation::GELU, {}, x, x, x, context), InvalidArgument);
  CHECK_THROWS_AS(activationBackward(Activation::Tanh, x, {}, x, x, context), InvalidArgument);
}

}  // namespace
}  // namespace muster
