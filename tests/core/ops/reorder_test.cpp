#include "muster/core/ops/reorder.h"

#include "tests/core/ops/test.h"

namespace muster {
namespace {

constexpr Layout kLayouts[] = {Layout::RowMajor, Layout::ChannelsLast, Layout::ChannelBlocks,
                               Layout::SampleBlocks};
// A GPU splits the last ones into tiles: several with a remainder, long and narrow ones, a full one.
const Shape kShapes[] = {{1, 1, 1, 1},   {16, 16, 2, 3}, {17, 20, 5, 4}, {3, 33, 1, 7},
                         {40, 1, 6, 6},  {5, 3, 9, 8},   {2, 70, 9, 9},  {3, 2, 30, 41},
                         {2, 600, 2, 1}, {1, 512, 1, 2}, {1, 31, 11, 3}, {2, 32, 8, 4}};

TEST_ON_DEVICES("reordering moves every element from any layout to any other, with zeros as padding") {
  std::mt19937_64 random(test::freshSeed());
  for (const Shape& shape : kShapes)
    for (Layout from : kLayouts)
      for (Layout to : kLayouts)
        for (const int threads : test::threadCounts<Where>({1, 3})) {
          INFO(shape.toString(), ", ", nameOf(from), ", ", nameOf(to));
          test::Place<Where> on(threads);
          const auto x = test::randomArray(shape, random);
          Tensor y = on.nan(shape, to);
          reorder(on(x, from), y, on.context);
          CHECK(test::maxError(on.get(y), x) == 0);
          CHECK(test::paddingIsZero(y));
        }
}

TEST_ON_DEVICES("reordering writes nothing past its target") {
  test::Place<Where> on;
  std::mt19937_64 random(5);
  constexpr std::int64_t kBehind = 5000;
  for (const Shape& shape : kShapes) {
    CAPTURE(shape.toString());
    const auto x = test::randomArray(shape, random);
    Tensor around = on.nan({shape.elements() + kBehind});
    Tensor y = around.slice(0, shape);
    reorder(on(x, Layout::ChannelsLast), y, on.context);
    CHECK(test::maxError(on.get(y), x) == 0);
    const test::Array behind = test::toArray(around);
    CHECK(std::all_of(behind.values.end() - kBehind, behind.values.end(),
                      [](double value) { return std::isnan(value); }));
  }
}

TEST_ON_DEVICES("features are loaded as float32, bytes as value/255") {
  test::Place<Where> on(2);
  std::mt19937_64 random(test::freshSeed());
  for (const Shape& shape : kShapes)
    for (Layout to : kLayouts) {
      INFO(shape.toString(), ", ", nameOf(to));
      Tensor bytes = Tensor::empty(shape, DType::UInt8), y = on.nan(shape, to), same = on.nan(shape, to);
      test::Array expected(shape);
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(random() % 256);
        expected.at(i) = static_cast<float>(bytes.data<std::uint8_t>()[i] / 255.0);
      }
      const auto x = test::randomArray(shape, random);
      loadFeatures(on(bytes), y, on.context);
      loadFeatures(on(x), same, on.context);
      CHECK(test::maxError(on.get(y), expected) == 0);  // one correctly rounded division
      CHECK(test::maxError(same, x) == 0);
      for (const Tensor& loaded : {y, same}) CHECK(test::paddingIsZero(loaded));
    }
}

TEST_ON_DEVICES("indices are loaded as they are, or converted from bytes") {
  test::Place<Where> on;
  const Shape shape{7, 100};
  Tensor bytes = Tensor::empty(shape, DType::UInt8), whole = Tensor::empty(shape, DType::Int64);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 7);
    whole.data<std::int64_t>()[i] = bytes.data<std::uint8_t>()[i];
  }
  for (const Tensor& indices : {bytes, whole}) {
    Tensor loaded = on(Tensor::zeros(shape, DType::Int64));
    loadIndices(on(indices), loaded, on.context);
    CHECK(test::sameBits(on.get(loaded), whole));
  }
}

TEST_CASE("features of any other rank are loaded in row-major order") {
  Context context;
  Tensor bytes = Tensor::zeros({2, 3}, DType::UInt8), y = test::nanTensor({2, 3});
  std::ranges::fill(bytes.span<std::uint8_t>(), std::uint8_t{51});
  loadFeatures(bytes, y, context);
  CHECK(std::ranges::all_of(y.span<float>(), [](float value) { return value == 0.2f; }));
  const Tensor x = Tensor::of({1, 2, 3, 4, 5, 6}, {2, 3});
  reorder(x, y, context);
  CHECK(test::sameBits(x, y));
}

TEST_CASE("reordering refuses tensors that do not fit by name") {
  Context context;
  Tensor x = Tensor::zeros({2, 3, 4, 5}), y = Tensor::zeros({2, 3, 5, 4});
  CHECK_REFUSED(reorder(x, y, context),
                "reorder: y is float32 [2, 3, 5, 4] on cpu, expected float32 [2, 3, 4, 5] on cpu");
  Tensor matrix = Tensor::zeros({2, 3});
  Tensor lastMatrix = Tensor::zeros({2, 3}, DType::Float32, Device::cpu(), Layout::ChannelsLast);
  CHECK_THROWS_AS(reorder(matrix, lastMatrix, context), InvalidArgument);
  Tensor counts = Tensor::zeros({2, 3}, DType::Int64);
  CHECK_THROWS_AS(reorder(counts, matrix, context), InvalidArgument);
  CHECK_THROWS_AS(loadFeatures(counts, matrix, context), InvalidArgument);
  CHECK_THROWS_AS(loadFeatures(matrix, counts, context), InvalidArgument);
  CHECK_THROWS_AS(loadFeatures({}, matrix, context), InvalidArgument);
  CHECK_THROWS_AS(loadFeatures(matrix, y, context), InvalidArgument);
}

}  // namespace
}  // namespace muster
