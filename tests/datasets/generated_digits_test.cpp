#include "muster/datasets/generated_digits.h"

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
  CHECK(draw(2, true, 5).second != image.second);
  CHECK(draw(1, false, 5).second != image.second);
  CHECK(draw(1, true, 6).second != image.second);

  const GeneratedDigitsIterator few(1, 6, 1, true), many(1, 20, 1, true);
  CHECK(std::ranges::equal(few.set()->image(5), image.second));
  CHECK(std::ranges::equal(many.set()->image(5), image.second));
  CHECK(few.set()->label(5) == image.first);
}

TEST_CASE("generated images equal those of generated_digits_golden.py") {
  struct Golden {
    bool train;
    std::int64_t index;
    int digit;
    const char* sum;
  };
  for (const auto& [train, index, digit, sum] : {Golden{true, 0, 1, "7a45db075e61823a326e7e5bf8bdbac3"},
                                                 Golden{true, 1, 9, "098a4abfae801d043aea9b2634868e75"},
                                                 Golden{true, 6, 0, "e18c2a01461c3bb8fb397a22bc38a07e"},
                                                 Golden{true, 13, 6, "00970c9adad6724dc2b23bb68721e7d1"},
                                                 Golden{true, 14, 4, "3c2baccb6362dc485c3989f40583c2e7"},
                                                 Golden{false, 4, 1, "a8c7596d430ce23facd3edf2fb4b325e"},
                                                 Golden{false, 7, 9, "7a924ac296b9a8c2ff1d85c3b0b4c64a"},
                                                 Golden{false, 11, 7, "4b7158de56258ea9cd25e808bb16f788"}}) {
    CAPTURE(index);
    const auto [drawn, image] = draw(12345, train, index);
    CHECK(drawn == digit);
    CHECK(md5(image) == sum);
  }
}

TEST_CASE("all ten digits are equally likely") {
  std::array<double, 10> counts{};
  for (int i = 0; i < 5000; ++i) ++counts[static_cast<std::size_t>(draw(3, true, i).first)];
  double chiSquare = 0;
  for (const double count : counts) chiSquare += (count - 500) * (count - 500) / 500;
  CHECK(chiSquare < 33.7);  // 9 degrees of freedom: exceeded once in 10,000
}

TEST_CASE("an image has ink in its middle, with paper around it") {
  for (int i = 0; i < 300; ++i) {
    CAPTURE(i);
    const auto image = draw(4, true, i).second;
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
}

TEST_CASE("batches have MNIST's form, with training images shuffled and test images not") {
  GeneratedDigitsIterator train(16, 40, 9, true), test(16, 40, 9, false);
  Batch batch;
  CHECK(train.examples() == 40);
  CHECK(train.description()->classes.at(7) == "7");
  REQUIRE(test.next(batch));
  CHECK(batch.features.front().value.shape() == Shape{16, 1, 28, 28});
  for (std::int64_t i = 0; i < 16; ++i)
    CHECK(batch.labels.front().value.data<std::int64_t>()[i] == draw(9, false, i).first);
  const auto pixels = batch.features.front().value.span<float>();
  CHECK(std::ranges::all_of(pixels, [](float x) { return x >= 0.0f && x <= 1.0f; }));
  const auto labelsOf = [&](DataSetIterator& data, std::int64_t epoch) {
    data.reset(epoch);
    data.next(batch);
    const auto labels = batch.labels.front().value.span<std::int64_t>();
    return std::vector<std::int64_t>(labels.begin(), labels.end());
  };
  CHECK(labelsOf(train, 0) != labelsOf(train, 1));
  CHECK(labelsOf(test, 0) == labelsOf(test, 1));
}

/// Softmax regression by gradient descent, one image at a time. @return the share of test images that it
/// classifies correctly.
double linearAccuracy(const ImageSet& train, const ImageSet& test) {
  std::vector<float> weights(10 * kPixels);
  const auto scores = [&](std::span<const std::uint8_t> image) {
    std::array<float, 10> out{};
    for (std::size_t c = 0; c < 10; ++c)
      for (std::size_t p = 0; p < kPixels; ++p)
        out[c] += weights[c * kPixels + p] * static_cast<float>(image[p]);
    return out;
  };
  for (std::int64_t i = 0; i < train.size(); ++i) {
    auto gradient = scores(train.image(i));
    const float most = *std::ranges::max_element(gradient);
    float sum = 0;
    for (auto& g : gradient) sum += g = std::exp(g - most);
    for (auto& g : gradient) g /= sum;
    gradient[static_cast<std::size_t>(train.label(i))] -= 1;
    for (std::size_t c = 0; c < 10; ++c)
      for (std::size_t p = 0; p < kPixels; ++p)
        weights[c * kPixels + p] -= 2e-7f * gradient[c] * static_cast<float>(train.image(i)[p]);
  }
  int right = 0;
  for (std::int64_t i = 0; i < test.size(); ++i) {
    const auto out = scores(test.image(i));
    right += std::ranges::max_element(out) - out.begin() == test.label(i);
  }
  return static_cast<double>(right) / static_cast<double>(test.size());
}

TEST_CASE("the digits can be learnt, but not from single pixels") {
  const GeneratedDigitsIterator train(1, 5000, 1, true), test(1, 1000, 1, false);
  const double accuracy = linearAccuracy(*train.set(), *test.set());
  CHECK(accuracy > 0.6);
  CHECK(accuracy < 0.95);
}

TEST_CASE("strokes are defined for ten digits") {
  for (int digit = 0; digit < 10; ++digit) {
    REQUIRE_FALSE(strokesOf(digit).empty());
    CHECK_FALSE(strokesOf(digit).front().optional);
    for (const auto& stroke : strokesOf(digit)) CHECK(stroke.points.size() >= 2);
  }
  CHECK_THROWS_AS(strokesOf(10), InvalidArgument);
  CHECK_THROWS_AS(strokesOf(-1), InvalidArgument);
}

TEST_CASE("invalid numbers of digits are refused") {
  CHECK_THROWS_AS(GeneratedDigitsIterator(1, 0, 1, true), InvalidArgument);
  CHECK_THROWS_AS(GeneratedDigitsIterator(0, 1, 1, true), InvalidArgument);
  std::array<std::uint8_t, 10> small{};
  CHECK_THROWS_AS(drawDigit(1, true, 0, small), InvalidArgument);
}

}  // namespace
}  // namespace muster
