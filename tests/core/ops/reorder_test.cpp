#include "muster/core/ops/reorder.h"

#include "tests/support/arrays.h"
#include "tests/support/devices.h"
#include "tests/support/test.h"

namespace muster {
namespace {

constexpr Layout kLayouts[] = {Layout::RowMajor, Layout::ChannelsLast, Layout::ChannelBlocks,
                               Layout::SampleBlocks};
// A GPU splits the last ones into tiles: several with a remainder, long and narrow ones, a full one.
const Shape kShapes[] = {{1, 1, 1, 1},   {16, 16, 2, 3}, {17, 20, 5, 4}, {3, 33, 1, 7},
                         {40, 1, 6, 6},  {5, 3, 9, 8},   {2, 70, 9, 9},  {3, 2, 30, 41},
                         {2, 600, 2, 1}, {1, 512, 1, 2}, {1, 31, 11, 3}, {2, 32, 8, 4}};

TEST_CASE_ON("reordering moves every element from any layout to any other, with zeros as padding", Where,
             MUSTER_TEST_DEVICES) {
  const Device device = Where::device();
  std::mt19937_64 random(test::freshSeed());
  for (const Shape& shape : kShapes)
    for (Layout from : kLayouts)
      for (Layout to : kLayouts)
        for (const int threads : test::threadCounts<Where>({1, 3})) {
          CAPTURE(shape.toString());
          CAPTURE(nameOf(from));
          CAPTURE(nameOf(to));
          Context context(device, {.threads = threads});
          const auto x = test::randomArray(shape, random);
          Tensor y = test::nanTensor(shape, to, device);
          reorder(test::toTensor(x, from, device), y, context);
          context.synchronize();
          CHECK(test::maxError(y, x) == 0);
          CHECK(test::paddingIsZero(y));
        }
}

TEST_CASE_ON("reordering writes nothing past its target", Where, MUSTER_TEST_DEVICES) {
  const Device device = Where::device();
  Context context(device);
  std::mt19937_64 random(5);
  constexpr std::int64_t kBehind = 5000;
  for (const Shape& shape : kShapes) {
    CAPTURE(shape.toString());
    const auto x = test::randomArray(shape, random);
    Tensor around = test::nanTensor({shape.elements() + kBehind}, device);
    Tensor y = around.slice(0, shape);
    reorder(test::toTensor(x, Layout::ChannelsLast, device), y, context);
    context.synchronize();
    CHECK(test::maxError(y, x) == 0);
    const test::Array behind = test::toArray(around);
    CHECK(std::all_of(behind.values.end() - kBehind, behind.values.end(),
                      [](double value) { return std::isnan(value); }));
  }
}

TEST_CASE_ON("features are loaded as float32, bytes as value/255", Where, MUSTER_TEST_DEVICES) {
  const Device device = Where::device();
  std::mt19937_64 random(test::freshSeed());
  Context context(device, {.threads = 2});
  for (const Shape& shape : kShapes)
    for (Layout to : kLayouts) {
      CAPTURE(shape.toString());
      CAPTURE(nameOf(to));
      Tensor bytes = Tensor::empty(shape, DType::UInt8), y = test::nanTensor(shape, to, device);
      test::Array expected(shape);
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(random() % 256);
        expected.at(i) = static_cast<float>(bytes.data<std::uint8_t>()[i] / 255.0);
      }
      loadFeatures(copyTo(bytes, device), y, context);
      context.synchronize();
      CHECK(test::maxError(y, expected) == 0);  // one correctly rounded division
      CHECK(test::paddingIsZero(y));

      const auto x = test::randomArray(shape, random);
      y = test::nanTensor(shape, to, device);
      loadFeatures(test::toTensor(x, device), y, context);
      context.synchronize();
      CHECK(test::maxError(y, x) == 0);
      CHECK(test::paddingIsZero(y));
    }
}

TEST_CASE_ON("indices are loaded as they are, or converted from bytes", Where, MUSTER_TEST_DEVICES) {
  const Device device = Where::device();
  Context context(device);
  const Shape shape{7, 100};
  Tensor bytes = Tensor::empty(shape, DType::UInt8), whole = Tensor::empty(shape, DType::Int64);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 7);
    whole.data<std::int64_t>()[i] = bytes.data<std::uint8_t>()[i];
  }
  Tensor widened = Tensor::zeros(shape, DType::Int64, device);
  Tensor copied = Tensor::zeros(shape, DType::Int64, device);
  loadIndices(copyTo(bytes, device), widened, context);
  loadIndices(copyTo(whole, device), copied, context);
  context.synchronize();
  CHECK(test::sameBits(widened, whole));
  CHECK(test::sameBits(copied, whole));
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
