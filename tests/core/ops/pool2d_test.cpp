#include "muster/core/ops/pool2d.h"

#include "tests/core/ops/test.h"
#include "tests/support/reference_ops.h"
#include "tests/support/shapes2d.h"

namespace muster {
namespace {

using test::Array;
using test::pool;
namespace reference = test::reference;

/// A plan's y and gradX, of inputs that begin `by` elements after an allocation.
std::pair<Tensor, Tensor> run(const Pool2dShape& shape, const Array& x, const Array& gradY, Layout layout,
                              Context& context, std::int64_t by = 0) {
  const Device device = context.device();
  const auto placed = [&](const Tensor& tensor) { return by > 0 ? test::shifted(tensor, by) : tensor; };
  auto plan = planPool2d(shape, layout, context);
  CHECK(plan->layout() == layout);
  Tensor y = placed(test::nanTensor(shape.output(), layout, device)),
         gradX = placed(test::nanTensor(shape.input(), layout, device));
  plan->forward(placed(test::toTensor(x, layout, device)), y);
  plan->backward(placed(test::toTensor(gradY, layout, device)), gradX);
  context.synchronize();
  return {y, gradX};
}

void checkAgainstReference(const Pool2dShape& shape, const Array& x, const Array& gradY, Layout layout,
                           Context& context) {
  const auto [y, gradX] = run(shape, x, gradY, layout, context);
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

TEST_ON_DEVICES("pooling agrees with the reference over shapes, layouts and threads") {
  std::mt19937_64 random(test::freshSeed());
  const Pool2dShape shapes[] = {
      pool({17, 20, 8, 6}),
      pool({2, 3, 7, 9}, {.kernel = 3, .stride = {1, 2}}),
      pool({3, 17, 5, 5}, {.kernel = 3, .stride = 2, .padding = 1}),
      pool({1, 33, 9, 4}, {.kernel = {2, 1}, .stride = {3, 2}}),
      pool({2, 2, 1, 3}, {.kernel = {2, 3}, .stride = 1, .padding = 1}),
      pool({2, 5, 17, 16}, {.kernel = {17, 16}, .stride = 1}),
      pool({1, 1, 1, 1}, {.kernel = 1, .stride = 1}),
      // Adjacent windows, with rows and columns outside all windows.
      pool({3, 5, 7, 8}),
      pool({3, 8, 6, 7}),
      pool({2, 3, 9, 13}),
      pool({2, 3, 8, 12}, {.stride = {3, 2}}),
      // Channels in multiples of four: overlapping windows, windows with gaps; a kernel with more than 256
      // positions.
      pool({2, 8, 6, 7}, {.kernel = 3, .stride = {1, 2}, .padding = 1}),
      pool({2, 4, 9, 10}, {.stride = {3, 4}, .padding = {1, 0}}),
      pool({2, 4, 20, 19}, {.kernel = {17, 16}, .stride = {1, 2}}),
  };
  for (Pool2dShape shape : shapes)
    for (PoolKind kind : {PoolKind::Max, PoolKind::Average}) {
      shape.kind = kind;
      const auto x = test::randomArray(shape.input(), random);
      const auto gradY = test::randomArray(shape.output(), random);
      for (Layout layout : Where::layouts())
        for (const int threads : test::threadCounts<Where>({1, 3})) {
          INFO(shape.input().toString(), ", ", shape.output().toString(), ", kind ", static_cast<int>(kind),
               ", ", nameOf(layout));
          Context context(Where::device(), {.threads = threads});
          checkAgainstReference(shape, x, gradY, layout, context);
        }
    }
}

TEST_ON_DEVICES("among equal values the first in row-major order gets the gradient") {
  Context context(Where::device());
  for (Layout layout : Where::layouts()) {
    CAPTURE(nameOf(layout));
    // Sixteen samples and channels, so that whole vectors are compared too.
    const auto shape = pool({16, 16, 2, 2});
    Array x(shape.input()), expected(shape.input()), gradY(shape.output());
    for (std::int64_t plane = 0; plane < 256; ++plane) {
      const double values[] = {1, 5, 5, 5};
      for (std::int64_t i = 0; i < 4; ++i) x.at(plane * 4 + i) = values[i];
      gradY.at(plane) = static_cast<double>(plane + 1);
      expected.at(plane * 4 + 1) = static_cast<double>(plane + 1);
    }
    CHECK(test::maxError(run(shape, x, gradY, layout, context).second, expected) == 0);
  }
}

TEST_ON_DEVICES("padding is never the maximum, while minus infinity can be, and NaN always is") {
  Context context(Where::device());
  for (Layout layout : Where::layouts()) {
    CAPTURE(nameOf(layout));
    const auto shape = pool({1, 1, 1, 4}, {.stride = 1, .padding = 1});
    // Windows of one row: {-3}, {-3, -inf}, {-inf, -inf}, {-inf, NaN}, {NaN}
    const Array x(shape.input(), {-3, -test::kInfinity, -test::kInfinity, test::kNan});
    const auto got = test::toArray(run(shape, x, Array(shape.output()), layout, context).first).values;
    const std::vector<double> expected{-3, -3, -test::kInfinity};
    for (const auto row : {std::span(got).first(5), std::span(got).last(5)}) {
      CHECK(std::ranges::equal(row.first(3), expected));
      CHECK((std::isnan(row[3]) && std::isnan(row[4])));
    }
  }
}

TEST_ON_DEVICES("in a 2x2 window the first NaN is the maximum, else the first of the largest") {
  Context context(Where::device());
  const double values[] = {-test::kInfinity, -1, 0, 2, test::kInfinity, test::kNan};
  // A square for each way to fill it, four to a row.
  constexpr std::int64_t kSquares = 6 * 6 * 6 * 6;
  const auto shape = pool({kSquares / 16, 4, 2, 8});
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
    const auto [y, gradX] = run(shape, x, gradY, layout, context);
    const Array got = test::toArray(y);
    CHECK(std::ranges::equal(got.values, largest, [](double value, double right) {
      return value == right || (std::isnan(value) && std::isnan(right));
    }));
    CHECK(test::maxError(gradX, expected) == 0);
  }
}

TEST_ON_DEVICES("pooling has the same bits for any alignment of the tensors") {
  Context context(Where::device());
  std::mt19937_64 random(3);
  for (const PoolKind kind : {PoolKind::Max, PoolKind::Average}) {
    const Pool2dShape shape{.kind = kind, .batch = 2, .channels = 3, .height = 7, .width = 8};
    const Array x = test::randomArray(shape.input(), random),
                gradY = test::randomArray(shape.output(), random);
    const auto expected = run(shape, x, gradY, Layout::RowMajor, context);
    for (const std::int64_t by : {1, 2, 3}) {
      CAPTURE(by);
      const auto got = run(shape, x, gradY, Layout::RowMajor, context, by);
      CHECK(test::sameBits(got.first, expected.first));
      CHECK(test::sameBits(got.second, expected.second));
    }
  }
}

TEST_CASE("average pooling divides by the size of the whole kernel") {
  Context context;
  const auto shape = pool({1, 1, 2, 2}, {.kind = PoolKind::Average, .stride = 1, .padding = 1});
  auto plan = planPool2d(shape, Layout::RowMajor, context);
  Tensor y = test::nanTensor(shape.output());
  plan->forward(Tensor::of({4, 8, 12, 16}, shape.input()), y);
  CHECK(test::maxError(y, Array(shape.output(), {1, 3, 2, 4, 10, 6, 3, 7, 4})) == 0);
}

TEST_CASE("pooling refuses invalid shapes and tensors") {
  Context context;
  for (const Pool2dShape& shape :
       {Pool2dShape{.batch = 0, .height = 4, .width = 4},
        Pool2dShape{.height = 4, .width = 4, .kernel = {0, 2}},
        Pool2dShape{.height = 4, .width = 4, .stride = {2, 0}},
        Pool2dShape{.height = 4, .width = 4, .padding = {2, 0}},
        Pool2dShape{.height = 4, .width = 4, .padding = {0, -1}}, Pool2dShape{.height = 1, .width = 4}})
    CHECK_THROWS_AS(planPool2d(shape, Layout::RowMajor, context), InvalidArgument);
  const auto shape = pool({2, 1, 4, 4});
  auto plan = planPool2d(shape, Layout::ChannelsLast, context);
  Tensor x = Tensor::zeros(shape.input(), DType::Float32, Device::cpu(), Layout::ChannelsLast);
  Tensor y = Tensor::zeros(shape.output());
  CHECK_THROWS_AS(plan->forward(x, y), InvalidArgument);
  CHECK_THROWS_AS(plan->forward(x, x), InvalidArgument);
  CHECK_THROWS_AS(plan->backward(x, x), InvalidArgument);
}

}  // namespace
}  // namespace muster
