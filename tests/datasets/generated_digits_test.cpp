#include "muster/datasets/generated_digits.h"

#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/digit_strokes.h"
#include "muster/datasets/md5.h"
#include "tests/support/test.h"

namespace muster {
namespace {

constexpr std::size_t kPixels = 784;
using Image = std::array<std::uint8_t, kPixels>;

std::pair<int, Image> draw(std::uint64_t seed, bool train, std::int64_t index) {
  Image image{};
  const int digit = drawDigit(seed, train, index, image);
  return {digit, image};
}

TEST_CASE("a generated image depends only on seed, part and index") {
  const auto image = draw(1, true, 5);
  CHECK(draw(1, true, 5) == image);
  for (const auto& other : {draw(2, true, 5), draw(1, false, 5), draw(1, true, 6)})
    CHECK(other.second != image.second);
  for (const std::int64_t count : {6, 20}) {
    const GeneratedDigitsIterator some(1, count, 1, true);
    CHECK(std::ranges::equal(some.set()->image(5), image.second));
    CHECK(some.set()->label(5) == image.first);
  }
}

TEST_CASE("generated images equal those of generated_digits_golden.py") {
  for (const auto& [train, index, digit, sum] : {std::tuple(true, 0, 1, "7a45db075e61823a326e7e5bf8bdbac3"),
                                                 {true, 1, 9, "098a4abfae801d043aea9b2634868e75"},
                                                 {true, 6, 0, "e18c2a01461c3bb8fb397a22bc38a07e"},
                                                 {true, 13, 6, "00970c9adad6724dc2b23bb68721e7d1"},
                                                 {true, 14, 4, "3c2baccb6362dc485c3989f40583c2e7"},
                                                 {false, 4, 1, "a8c7596d430ce23facd3edf2fb4b325e"},
                                                 {false, 7, 9, "7a924ac296b9a8c2ff1d85c3b0b4c64a"},
                                                 {false, 11, 7, "4b7158de56258ea9cd25e808bb16f788"}}) {
    CAPTURE(index);
    const auto [drawn, image] = draw(12345, train, index);
    CHECK(drawn == digit);
    CHECK(md5(image) == sum);
  }
}

TEST_CASE("all ten digits are equally likely, and each has ink in its middle, with paper around it") {
  std::array<double, 10> counts{};
  for (int i = 0; i < 5000; ++i) {
    const auto [digit, image] = draw(3, true, i);
    ++counts[static_cast<std::size_t>(digit)];
    if (i >= 300) continue;
    CAPTURE(i);
    double ink = 0, x = 0, y = 0;
    int dark = 0;
    for (std::size_t p = 0; p < kPixels; ++p) {
      if (image[p] < 100) continue;
      ++dark;
      ink += image[p];
      x += image[p] * (static_cast<double>(p % 28) + 0.5);
      y += image[p] * (static_cast<double>(p / 28) + 0.5);
    }
    CHECK(dark > 15);
    CHECK(dark < 784 / 2);
    CHECK(std::abs(x / ink - 14) < 8);
    CHECK(std::abs(y / ink - 14) < 8);
  }
  double chiSquare = 0;
  for (const double count : counts) chiSquare += (count - 500) * (count - 500) / 500;
  CHECK(chiSquare < 33.7);  // 9 degrees of freedom: exceeded once in 10,000
}

TEST_CASE("batches have MNIST's form, with training images shuffled and test images not") {
  GeneratedDigitsIterator train(16, 40, 9, true), test(16, 40, 9, false);
  CHECK(train.examples() == 40);
  CHECK(train.description()->classes.at(7) == "7");
  Batch batch;
  const auto labelsOf = [&](DataSetIterator& data, std::int64_t epoch) {
    data.reset(epoch);
    REQUIRE(data.next(batch));
    const auto labels = batch.labels.front().value.span<std::int64_t>();
    return std::vector<std::int64_t>(labels.begin(), labels.end());
  };
  CHECK(labelsOf(train, 0) != labelsOf(train, 1));
  std::vector<std::int64_t> drawn;
  for (std::int64_t i = 0; i < 16; ++i) drawn.push_back(draw(9, false, i).first);
  for (const std::int64_t epoch : {0, 1}) CHECK(labelsOf(test, epoch) == drawn);
  CHECK(batch.features.front().value.shape() == Shape{16, 1, 28, 28});
  const auto pixels = batch.features.front().value.span<float>();
  CHECK(std::ranges::all_of(pixels, [](float x) { return x >= 0.0f && x <= 1.0f; }));
}

TEST_CASE("the digits can be learnt, but not from single pixels") {
  GeneratedDigitsIterator train(1, 5000, 1, true), test(100, 1000, 1, false);
  MultiLayerNetwork linear({.seed = 1,
                            .updater = Sgd{.learningRate = 0.01},
                            .inputShape = {1, 28, 28},
                            .layers = {Output{.classes = 10}}});
  linear.init();
  linear.fit(train, 1);
  const double accuracy = linear.evaluate(test).accuracy();
  CHECK(accuracy > 0.6);
  CHECK(accuracy < 0.95);
}

TEST_CASE("strokes are defined for ten digits, and invalid numbers of digits are refused") {
  for (int digit = 0; digit < 10; ++digit) {
    REQUIRE_FALSE(strokesOf(digit).empty());
    CHECK_FALSE(strokesOf(digit).front().optional);
    for (const auto& stroke : strokesOf(digit)) CHECK(stroke.points.size() >= 2);
  }
  for (const int digit : {10, -1}) CHECK_THROWS_AS(strokesOf(digit), InvalidArgument);
  CHECK_THROWS_AS(GeneratedDigitsIterator(1, 0, 1, true), InvalidArgument);
  CHECK_THROWS_AS(GeneratedDigitsIterator(0, 1, 1, true), InvalidArgument);
  std::array<std::uint8_t, 10> small{};
  CHECK_THROWS_AS(drawDigit(1, true, 0, small), InvalidArgument);
}

}  // namespace
}  // namespace muster
