#include "muster/core/ops/pool2d.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/ops/conv_transpose2d.h"
#include "tests/support/devices.h"
#include "tests/support/reference_ops.h"
#include "tests/support/rounding.h"

namespace muster {
namespace {

using test::Array;
namespace reference = test::reference;

void checkAgainstReference(const Pool2dShape& shape, const Array& x, const Array& gradY, Layout layout,
                           Context& context) {
  const Device device = context.device();
  auto plan = planPool2d(shape, layout, context);
  CHECK(plan->layout() == layout);
  Tensor y = test::nanTensor(shape.output(), layout, device),
         gradX = test::nanTensor(shape.input(), layout, device);
  plan->forward(test::toTensor(x, layout, device), y);
  plan->backward(test::toTensor(gradY, layout, device), gradX);
  context.synchronize();
  // A maximum is one of its inputs. A gradient is the sum of the gradients of all windows that overlap there.
  // Averages divide each term, or the sum, by the window's size.
  const bool average = shape.kind == PoolKind::Average;
  const std::int64_t places = shape.kernel[0] * shape.kernel[1];
  const auto windows = [&](std::size_t axis) { return (shape.kernel[axis] - 1) / shape.stride[axis] + 1; };
  const auto deviation = average ? test::kUniform / static_cast<double>(places) : test::kUniform;
  CHECK(test::maxDifference(y, reference::pool2d(shape, x)) <=
        (average ? test::sumError(places, deviation, 2 * test::kRounding) : 0));
  CHECK(test::maxDifference(gradX, reference::pool2dBackward(shape, x, gradY)) <
        test::sumError(windows(0) * windows(1), deviation, 2 * test::kRounding));
  CHECK(test::paddingIsZero(y));
  CHECK(test::paddingIsZero(gradX));
}

TEST_CASE("one number is both sizes of a window in an operation, as in a layer") {
  const Pool2dShape pool{.height = 6, .width = 9, .kernel = 3, .stride = 3, .padding = 1};
  CHECK(pool.output() == Shape{1, 1, 2, 3});  // (6 + 2 - 3) / 3 + 1, (9 + 2 - 3) / 3 + 1
  const Conv2dShape convolution{
      .height = 6, .width = 9, .kernel = 3, .stride = 2, .padding = 1, .dilation = 2};
  CHECK(convolution.output() == Shape{1, 1, 2, 4});  // (6 + 2 - 5) / 2 + 1, (9 + 2 - 5) / 2 + 1
  const ConvTranspose2dShape back{
      .height = 2, .width = 4, .kernel = 3, .stride = 2, .padding = 1, .outputPadding = 1, .dilation = 2};
  CHECK(back.output() == Shape{1, 1, 6, 10});  // (2 - 1) 2 - 2 + 4 + 1 + 1, (4 - 1) 2 - 2 + 4 + 1 + 1
}

TEST_CASE_TEMPLATE("pooling agrees with the reference over shapes, layouts and threads", Where,
                   MUSTER_TEST_DEVICES) {
  MUSTER_NEEDS_DEVICE(Where);
  std::mt19937_64 random(test::freshSeed());
  const Pool2dShape shapes[] = {
      {.batch = 17, .channels = 20, .height = 8, .width = 6},
      {.batch = 2, .channels = 3, .height = 7, .width = 9, .kernel = {3, 3}, .stride = {1, 2}},
      {.batch = 3,
       .channels = 17,
       .height = 5,
       .width = 5,
       .kernel = {3, 3},
       .stride = {2, 2},
       .padding = {1, 1}},
      {.batch = 1, .channels = 33, .height = 9, .width = 4, .kernel = {2, 1}, .stride = {3, 2}},
      {.batch = 2,
       .channels = 2,
       .height = 1,
       .width = 3,
       .kernel = {2, 3},
       .stride = {1, 1},
       .padding = {1, 1}},
      {.batch = 2, .channels = 5, .height = 17, .width = 16, .kernel = {17, 16}, .stride = {1, 1}},
      {.batch = 1, .channels = 1, .height = 1, .width = 1, .kernel = {1, 1}, .stride = {1, 1}},
      // Adjacent windows, with rows and columns outside all windows.
      {.batch = 3, .channels = 5, .height = 7, .width = 8},
      {.batch = 3, .channels = 8, .height = 6, .width = 7},
      {.batch = 2, .channels = 3, .height = 9, .width = 13},
      {.batch = 2, .channels = 3, .height = 8, .width = 12, .stride = {3, 2}},
      // Channels in multiples of four: overlapping windows, windows with gaps; a kernel with more than 256
      // positions.
      {.batch = 2,
       .channels = 8,
       .height = 6,
       .width = 7,
       .kernel = {3, 3},
       .stride = {1, 2},
       .padding = {1, 1}},
      {.batch = 2,
       .channels = 4,
       .height = 9,
       .width = 10,
       .kernel = {2, 2},
       .stride = {3, 4},
       .padding = {1, 0}},
      {.batch = 2, .channels = 4, .height = 20, .width = 19, .kernel = {17, 16}, .stride = {1, 2}},
  };
  for (Pool2dShape shape : shapes)
    for (PoolKind kind : {PoolKind::Max, PoolKind::Average}) {
      shape.kind = kind;
      const auto x = test::randomArray(shape.input(), random);
      const auto gradY = test::randomArray(shape.output(), random);
      for (Layout layout : Where::layouts())
        for (const int threads : test::threadCounts<Where>({1, 3})) {
          CAPTURE(shape.input().toString());
          CAPTURE(shape.output().toString());
          CAPTURE(static_cast<int>(kind));
          CAPTURE(nameOf(layout));
          Context context(Where::device(), {.threads = threads});
          checkAgainstReference(shape, x, gradY, layout, context);
        }
    }
}

TEST_CASE_TEMPLATE("among equal values the first in row-major order gets the gradient", Where,
                   MUSTER_TEST_DEVICES) {
  MUSTER_NEEDS_DEVICE(Where);
  const Device device = Where::device();
  Context context(device);
  for (Layout layout : Where::layouts()) {
    CAPTURE(nameOf(layout));
    // Sixteen samples and channels, so that whole vectors are compared too.
    const Pool2dShape shape{.batch = 16, .channels = 16, .height = 2, .width = 2};
    Array x(shape.input()), expected(shape.input()), gradY(shape.output());
    for (std::int64_t plane = 0; plane < 256; ++plane) {
      const double values[] = {1, 5, 5, 5};
      for (std::int64_t i = 0; i < 4; ++i) x.at(plane * 4 + i) = values[i];
      gradY.at(plane) = static_cast<double>(plane + 1);
      expected.at(plane * 4 + 1) = static_cast<double>(plane + 1);
    }
    auto plan = planPool2d(shape, layout, context);
    Tensor y = test::nanTensor(shape.output(), layout, device);
    Tensor gradX = test::nanTensor(shape.input(), layout, device);
    plan->forward(test::toTensor(x, layout, device), y);
    plan->backward(test::toTensor(gradY, layout, device), gradX);
    context.synchronize();
    CHECK(test::maxError(gradX, expected) == 0);
  }
}

TEST_CASE_TEMPLATE("padding is never the maximum, while minus infinity can be, and NaN always is", Where,
                   MUSTER_TEST_DEVICES) {
  MUSTER_NEEDS_DEVICE(Where);
  const Device device = Where::device();
  Context context(device);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (Layout layout : Where::layouts()) {
    CAPTURE(nameOf(layout));
    const Pool2dShape shape{.height = 1, .width = 4, .kernel = {2, 2}, .stride = {1, 1}, .padding = {1, 1}};
    // Windows of one row: {-3}, {-3, -inf}, {-inf, -inf}, {-inf, NaN}, {NaN}
    const Array x(shape.input(), {-3, -infinity, -infinity, std::nan("")});
    auto plan = planPool2d(shape, layout, context);
    Tensor y = test::nanTensor(shape.output(), layout, device);
    plan->forward(test::toTensor(x, layout, device), y);
    context.synchronize();
    const Array got = test::toArray(y);
    for (std::int64_t row = 0; row < 2; ++row) {
      CHECK(got.at(row * 5 + 0) == -3);
      CHECK(got.at(row * 5 + 1) == -3);
      CHECK(got.at(row * 5 + 2) == -infinity);
      CHECK(std::isnan(got.at(row * 5 + 3)));
      CHECK(std::isnan(got.at(row * 5 + 4)));
    }
  }
}

TEST_CASE_TEMPLATE("in a 2x2 window the first NaN is the maximum, else the first of the largest", Where,
                   MUSTER_TEST_DEVICES) {
  MUSTER_NEEDS_DEVICE(Where);
  const Device device = Where::device();
  Context context(device);
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const double values[] = {-infinity, -1, 0, 2, infinity, nan};
  // A square for each way to fill it, four to a row.
  constexpr std::int64_t kSquares = 6 * 6 * 6 * 6;
  const Pool2dShape shape{.batch = kSquares / 16, .channels = 4, .height = 2, .width = 8};
  Array x(shape.input()), gradY(shape.output()), expected(shape.input());
  std::vector<double> largest;
  for (std::int64_t square = 0; square < kSquares; ++square) {
    const std::int64_t place[] = {square % 6, square / 6 % 6, square / 36 % 6, square / 216};
    int winner = 0;
    for (int i = 1; i < 4; ++i) {
      const double best = values[place[winner]], value = values[place[i]];
      if (!std::isnan(best) && (std::isnan(value) || value > best)) winner = i;
    }
    const auto at = [&](int i) { return square / 4 * 16 + i / 2 * 8 + square % 4 * 2 + i % 2; };
    for (int i = 0; i < 4; ++i) x.at(at(i)) = values[place[i]];
    largest.push_back(values[place[winner]]);
    gradY.at(square) = static_cast<double>(square + 1);
    expected.at(at(winner)) = static_cast<double>(square + 1);
  }
  for (Layout layout : Where::layouts()) {
    CAPTURE(nameOf(layout));
    auto plan = planPool2d(shape, layout, context);
    Tensor y = test::nanTensor(shape.output(), layout, device);
    Tensor gradX = test::nanTensor(shape.input(), layout, device);
    plan->forward(test::toTensor(x, layout, device), y);
    plan->backward(test::toTensor(gradY, layout, device), gradX);
    context.synchronize();
    const Array got = test::toArray(y);
    std::int64_t wrong = 0;
    for (std::int64_t square = 0; square < kSquares; ++square) {
      const double value = got.at(square), right = largest[static_cast<std::size_t>(square)];
      wrong += std::isnan(right) ? !std::isnan(value) : value != right;
    }
    CHECK(wrong == 0);
    CHECK(test::maxError(gradX, expected) == 0);
  }
}

TEST_CASE_TEMPLATE("pooling has the same bits for any alignment of the tensors", Where, MUSTER_TEST_DEVICES) {
  MUSTER_NEEDS_DEVICE(Where);
  const Device device = Where::device();
  Context context(device);
  std::mt19937_64 random(3);
  for (const PoolKind kind : {PoolKind::Max, PoolKind::Average}) {
    const Pool2dShape shape{.kind = kind, .batch = 2, .channels = 3, .height = 7, .width = 8};
    const Tensor x = test::toTensor(test::randomArray(shape.input(), random), Layout::RowMajor, device);
    const Tensor gradY = test::toTensor(test::randomArray(shape.output(), random), Layout::RowMajor, device);
    const auto run = [&](std::int64_t by) {
      auto plan = planPool2d(shape, Layout::RowMajor, context);
      std::vector<Tensor> results{test::nanTensor(shape.output(), Layout::RowMajor, device),
                                  test::nanTensor(shape.input(), Layout::RowMajor, device)};
      for (Tensor& result : results) result = test::shifted(result, by);
      plan->forward(test::shifted(x, by), results[0]);
      plan->backward(test::shifted(gradY, by), results[1]);
      context.synchronize();
      return results;
    };
    const auto expected = run(0);
    for (const std::int64_t by : {1, 2, 3}) {
      CAPTURE(by);
      const auto got = run(by);
      CHECK(test::sameBits(got[0], expected[0]));
      CHECK(test::sameBits(got[1], expected[1]));
    }
  }
}

TEST_CASE("average pooling divides by the size of the whole kernel") {
  Context context;
  const Pool2dShape shape{.kind = PoolKind::Average,
                          .height = 2,
                          .width = 2,
                          .kernel = {2, 2},
                          .stride = {1, 1},
                          .padding = {1, 1}};
  auto plan = planPool2d(shape, Layout::RowMajor, context);
  Tensor y = test::nanTensor(shape.output());
  plan->forward(Tensor::of({4, 8, 12, 16}, shape.input()), y);
  CHECK(test::maxError(y, Array(shape.output(), {1, 3, 2, 4, 10, 6, 3, 7, 4})) == 0);
}

TEST_CASE("pooling refuses invalid shapes and tensors") {
  Context context;
  const auto refused = [&](const Pool2dShape& shape) {
    CHECK_THROWS_AS(planPool2d(shape, Layout::RowMajor, context), InvalidArgument);
  };
  refused({.batch = 0, .height = 4, .width = 4});
  refused({.height = 4, .width = 4, .kernel = {0, 2}});
  refused({.height = 4, .width = 4, .stride = {2, 0}});
  refused({.height = 4, .width = 4, .kernel = {2, 2}, .padding = {2, 0}});
  refused({.height = 4, .width = 4, .padding = {0, -1}});
  refused({.height = 1, .width = 4});
  const Pool2dShape shape{.batch = 2, .height = 4, .width = 4};
  auto plan = planPool2d(shape, Layout::ChannelsLast, context);
  Tensor x = Tensor::zeros(shape.input(), DType::Float32, Device::cpu(), Layout::ChannelsLast);
  Tensor y = Tensor::zeros(shape.output());
  CHECK_THROWS_AS(plan->forward(x, y), InvalidArgument);
  CHECK_THROWS_AS(plan->forward(x, x), InvalidArgument);
  CHECK_THROWS_AS(plan->backward(x, x), InvalidArgument);
}

}  // namespace
}  // namespace muster
