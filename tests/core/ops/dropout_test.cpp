#include "muster/core/ops/dropout.h"

#include "tests/core/ops/test.h"
#include "tests/support/batch_of.h"
#include "tests/support/reference_ops.h"

namespace muster {
namespace {

/// The documented rule, using only the random generator.
bool keeps(const RandomStream& random, double rate, std::int64_t example, std::int64_t features,
           std::int64_t e) {
  const std::int64_t perRow = features / 4 + (features % 4 != 0);
  const auto words = random.words(static_cast<std::uint64_t>(example * perRow + e / 4));
  return words[static_cast<std::size_t>(e % 4)] >= std::floor(rate * 4294967296.0);
}

TEST_ON_DEVICES("dropout follows its rule over shapes, rates and threads") {
  const std::uint64_t seed = test::freshSeed();
  std::mt19937_64 engine(seed);
  for (const Shape& shape :
       {Shape{1, 1}, Shape{5, 7}, Shape{33, 2, 3, 3}, Shape{20, 16}, Shape{3, 150}, Shape{2, 259}})
    for (double rate : {0.0, 0.25, 0.5, 0.99})
      for (const int threads : test::threadCounts<Where>({1, 3})) {
        INFO(shape.toString(), ", rate ", rate);
        test::Place<Where> on(threads);
        const RandomStream random(seed, "dropout", 3);
        const std::int64_t first = 1000, features = shape.dropFirst().elements();
        const auto x = test::randomArray(shape, engine);
        const auto expected = test::reference::dropout(x, rate, [&](std::int64_t n, std::int64_t e) {
          return keeps(random, rate, first + n, features, e);
        });
        Tensor y = on.nan(shape), inPlace = on(x);
        dropout(on(x), y, rate, random, first, on.context);
        dropout(inPlace, inPlace, rate, random, first, on.context);
        CHECK(test::maxError(on.get(y), expected) <
              test::roundings(2.01));  // of 1 / (1 - rate), and of the product
        CHECK(test::sameBits(inPlace, y));
        // The same bits as on the CPU, also if epoch and position are read on the device.
        Context cpu;
        Tensor onCpu = test::nanTensor(shape), read = on.nan(shape);
        dropout(test::toTensor(x), onCpu, rate, random, first, cpu);
        CHECK(test::sameBits(y, onCpu));
        dropout(on(x), read, rate, RandomStream(seed, "dropout"), on(test::integers({3, first})), on.context);
        CHECK(test::sameBits(on.get(read), onCpu));
      }
}

TEST_CASE("the dropped elements of an example do not depend on its batch") {
  Context context;
  const RandomStream random(7, "dropout", 1);
  const Tensor x = Tensor::of(std::vector<float>(12 * 9, 1.0f), {12, 9});
  Tensor whole = test::nanTensor({12, 9});
  dropout(x, whole, 0.5, random, 40, context);
  for (std::int64_t begin = 0; begin < 12; begin += 4) {
    Tensor part = test::nanTensor({4, 9});
    dropout(x.rows(begin, begin + 4), part, 0.5, random, 40 + begin, context);
    CHECK(test::sameBits(part, whole.rows(begin, begin + 4)));
  }
}

TEST_CASE("dropout drops about `rate` of the elements, and keeps the mean") {
  Context context;
  const std::int64_t count = 100000;
  const Tensor x = Tensor::of(std::vector<float>(count, 1.0f), {100, count / 100});
  Tensor y = test::nanTensor(x.shape());
  dropout(x, y, 0.3, RandomStream(1, "dropout"), 0, context);
  double zeros = 0, sum = 0;
  for (float value : y.span<float>()) {
    zeros += value == 0;
    sum += value;
  }
  const double sigma = std::sqrt(0.3 * 0.7 / count);
  CHECK(std::abs(zeros / count - 0.3) < 5 * sigma);
  CHECK(std::abs(sum / count - 1) < 5 * sigma / 0.7);
}

TEST_CASE("dropout refuses invalid rates and tensors") {
  Context context;
  const RandomStream random(1, "dropout");
  Tensor x = Tensor::zeros({2, 3}), y = Tensor::zeros({2, 4});
  CHECK_REFUSED(dropout(x, x, 1.0, random, 0, context),
                "dropout: expected a rate from 0 to less than 1, got 1");
  for (const double rate : {-0.1, double{test::kNan}})
    CHECK_THROWS_AS(dropout(x, x, rate, random, 0, context), InvalidArgument);
  CHECK_THROWS_AS(dropout(x, x, 0.5, random, -1, context), InvalidArgument);
  CHECK_THROWS_AS(dropout(x, y, 0.5, random, 0, context), InvalidArgument);
  Tensor blocks = Tensor::zeros({2, 3, 4, 4}, DType::Float32, Device::cpu(), Layout::SampleBlocks);
  CHECK_THROWS_AS(dropout(blocks, blocks, 0.5, random, 0, context), InvalidArgument);
}

}  // namespace
}  // namespace muster
