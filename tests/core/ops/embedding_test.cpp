#include "muster/core/ops/embedding.h"

#include "tests/core/ops/test.h"
#include "tests/support/batch_of.h"

namespace muster {
namespace {

TEST_ON_DEVICES(
    "an embedding gathers rows, and adds up gradients in the order of the indices, on any number of "
    "threads") {
  std::mt19937_64 random(test::freshSeed());
  for (const std::int64_t features : {1, 7, 64, 5000})
    for (const Shape& shape : {Shape{1}, Shape{6}, Shape{5, 9}, Shape{20, 31}}) {
      constexpr std::int64_t kVocabulary = 11;
      CAPTURE(features);
      std::vector<std::int64_t> values(static_cast<std::size_t>(shape.elements()));
      for (auto& value : values) value = static_cast<std::int64_t>(random() % (kVocabulary - 1));
      const Tensor indices = test::integers(values, shape);
      const auto table = test::randomArray({kVocabulary, features}, random);
      const Shape rows{shape.elements(), features};
      const auto gradY = test::randomArray(rows, random);
      test::Array expected(rows), expectedGradient(table.shape);
      for (std::int64_t i = 0; i < rows[0]; ++i)
        for (std::int64_t f = 0; f < features; ++f) {
          const std::int64_t v = values[static_cast<std::size_t>(i)];
          expected.at(i * features + f) = table.at(v * features + f);
          expectedGradient.at(v * features + f) += gradY.at(i * features + f);
        }
      const Shape output =
          shape.rank() == 1 ? Shape{shape[0], features} : Shape{shape[0], shape[1], features};
      std::int64_t mostPlaces = 0;  // of one row
      for (std::int64_t v = 0; v < kVocabulary; ++v)
        mostPlaces = std::max<std::int64_t>(mostPlaces, std::ranges::count(values, v));
      Tensor first;
      for (const int threads : test::threadCounts<Where>({1, 2, 3})) {
        test::Place<Where> on(threads);
        Tensor y = on.nan(output), gradient = on.nan(table.shape);
        embeddingForward(on(indices), on(table), {}, y, on.context);
        CHECK(test::maxError(on.get(y).reshape(rows), expected) == 0);
        embeddingBackward(on(indices), on(gradY).reshape(output), {}, gradient, on.context);
        CHECK(test::maxDifference(on.get(gradient), expectedGradient) <
              test::sumError(mostPlaces, test::kUniform));
        if (threads == 1) first = gradient;
        CHECK(test::sameBits(gradient, first));
      }
    }
}

TEST_ON_DEVICES("gradients of large vocabularies and many positions have the bits of sums in order") {
  test::Place<Where> on;
  std::mt19937_64 random(test::freshSeed());
  struct Sizes {
    std::int64_t vocabulary, count, features;
  };
  // A GPU sorts positions by one byte of their rows at a time, 2048 a block, 2^18 at a time.
  for (const auto& [vocabulary, count, features] :
       {Sizes{255, 2048, 3}, Sizes{256, 5003, 2}, Sizes{70000, 3001, 5}, Sizes{40, 262144 + 777, 1}}) {
    INFO("vocabulary ", vocabulary, ", count ", count);
    std::vector<std::int64_t> values(static_cast<std::size_t>(count));
    Tensor mask = Tensor::empty({count});
    const auto gradY = test::randomArray({count, features}, random);
    Tensor expected = Tensor::zeros({vocabulary, features});
    for (std::int64_t i = 0; i < count; ++i) {
      auto& index = values[static_cast<std::size_t>(i)];
      // Every third position names the last row; some rows are never named.
      index = i % 3 == 0
                  ? vocabulary - 1
                  : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(vocabulary + 2)) - 1;
      mask.data<float>()[i] = random() % 8 == 0 ? 0.0f : 1.0f;
      if (index < 0 || index >= vocabulary || mask.data<float>()[i] == 0) continue;
      for (std::int64_t f = 0; f < features; ++f)
        expected.data<float>()[index * features + f] += static_cast<float>(gradY.at(i * features + f));
    }
    Tensor gradient = on.nan({vocabulary, features});
    embeddingBackward(on(test::integers(values)), on(gradY), on(mask), gradient, on.context);
    CHECK(test::sameBits(on.get(gradient), expected));
  }
}

TEST_ON_DEVICES("masked positions give zeros for any index, and no gradient") {
  test::Place<Where> on;
  const Tensor indices = on(test::integers({0, 1, 2, -7, 99, 1}, {2, 3})),
               table = on(Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2})),
               mask = on(Tensor::of({1, 1, 0, 0, 0, 1}, {2, 3}));
  Tensor y = on.nan({2, 3, 2}), gradient = on.nan({3, 2}), gradY = test::filled({2, 3, 2}, 1);
  embeddingForward(indices, table, mask, y, on.context);
  CHECK(test::maxError(on.get(y), test::Array({2, 3, 2}, {1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 3, 4})) == 0);
  gradY.data<float>()[4] = test::kNan;
  embeddingBackward(indices, on(gradY), mask, gradient, on.context);
  CHECK(test::maxError(on.get(gradient), test::Array({3, 2}, {1, 1, 2, 2, 0, 0})) == 0);
}

TEST_CASE_ON("on a GPU an index out of range gives a row of NaN, and no gradient", Where, test::OnGpu) {
  test::Place<Where> on;
  const Tensor indices = on(test::integers({1, 3, -1})), table = on(Tensor::of({1, 2, 3}, {3, 1}));
  Tensor y = on(Tensor::zeros({3, 1})), gradient = on.nan({3, 1});
  embeddingForward(indices, table, {}, y, on.context);
  embeddingBackward(indices, table, {}, gradient, on.context);
  const auto got = test::floatsOf(on.get(y));
  CHECK(got[0] == 2);
  CHECK(std::isnan(got[1]));
  CHECK(std::isnan(got[2]));
  CHECK(test::maxError(on.get(gradient), test::Array({3, 1}, {0, 1, 0})) == 0);
}

TEST_CASE("an index out of range is reported by example and position") {
  Context context;
  const Tensor table = Tensor::zeros({3, 2});
  Tensor y = Tensor::zeros({2, 4, 2}), one = Tensor::zeros({2, 2});
  CHECK_REFUSED(embeddingForward(test::integers({0, 1, 2, 0, 1, 1, 3, 0}, {2, 4}), table, {}, y, context),
                "embedding: the index of example 1 at position 2 is 3, but the vocabulary is 0 to 2");
  CHECK_REFUSED(embeddingForward(test::integers({0, -1}, {2}), table, {}, one, context),
                "embedding: the index of example 1 at position 0 is -1, but the vocabulary is 0 to 2");
  CHECK_REFUSED(embeddingForward(test::integers({0, 1}, {2}), table, {}, y, context),
                "embedding: y is float32 [2, 4, 2] on cpu, expected float32 [2, 2] on cpu");
  CHECK_THROWS_AS(embeddingForward(Tensor::zeros({2}), table, {}, one, context), InvalidArgument);
  CHECK_THROWS_AS(embeddingForward(test::integers({0, 1}, {2}), y, {}, one, context), InvalidArgument);
  CHECK_THROWS_AS(embeddingForward(test::integers({0, 1}, {2}), table, Tensor::zeros({3}), one, context),
                  InvalidArgument);
}

}  // namespace
}  // namespace muster
