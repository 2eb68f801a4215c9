#include "muster/core/data/image_transform.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/data/prefetch.h"
#include "tests/support/allocations.h"
#include "tests/support/arrays.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using Image = std::vector<int>;

const std::vector<ImageTransform> kBoth{RandomCrop{.padding = 2}, RandomFlip{}};

/// `count` images [channels, height, width] whose elements count up from 1, all the same.
Tensor countingImages(std::int64_t count, const Shape& image, DType dtype) {
  Tensor images = Tensor::empty(image.prepend(count), dtype);
  const auto fill = [&]<typename T>(std::span<T> values) {
    for (std::int64_t i = 0; T & value : values) value = static_cast<T>(1 + i++ % image.elements());
  };
  if (dtype == DType::UInt8)
    fill(images.span<std::uint8_t>());
  else
    fill(images.span<float>());
  return images;
}

InMemoryDataSetIterator dataOf(std::int64_t count, const Shape& image, DType dtype = DType::UInt8,
                               std::int64_t batch = 4) {
  return {countingImages(count, image, dtype), Tensor::zeros({count}, DType::Int64), batch};
}

/// The images of the rest of an epoch.
std::vector<Image> imagesOfRest(DataSetIterator& data) {
  std::vector<Image> images;
  for (Batch batch; data.next(batch);)
    for (std::int64_t n = 0; n < batch.examples(); ++n) {
      const Tensor image = batch.features.front().value.rows(n, n + 1);
      auto& values = images.emplace_back();
      for (std::int64_t i = 0; i < image.elements(); ++i)
        values.push_back(static_cast<int>(valueAt(image, i)));
    }
  return images;
}

std::vector<Image> imagesOf(DataSetIterator& data, std::int64_t epoch) {
  data.reset(epoch);
  return imagesOfRest(data);
}

TEST_CASE("transformed images equal those of the script beside this test, as bytes and as floats") {
  for (const DType dtype : {DType::UInt8, DType::Float32}) {
    auto data = dataOf(4, {1, 3, 4}, dtype, 3);
    TransformingIterator transformed(data, kBoth, 7);
    const std::vector<Image> first{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 3},
                                   {0, 1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 11},
                                   {0, 0, 5, 6, 0, 0, 9, 10, 0, 0, 0, 0},
                                   {0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 5, 6}};
    CHECK(imagesOfRest(transformed) == first);
    CHECK(imagesOf(transformed, 3) == std::vector<Image>{{11, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                                                         {0, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5},
                                                         {0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2},
                                                         {11, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}});
    CHECK(imagesOf(transformed, 0) == first);
  }
}

TEST_CASE("all channels of an image are shifted together, and the rest of a batch does not change") {
  auto data = dataOf(6, {3, 4, 5});
  TransformingIterator transformed(data, kBoth, 1);
  for (const Image& image : imagesOfRest(transformed))
    for (std::size_t i = 0; i < 20; ++i)
      for (const std::size_t c : {1U, 2U}) {
        const int first = image[i], other = image[i + 20 * c];
        CHECK(other == (first == 0 ? 0 : first + 20 * static_cast<int>(c)));
      }
  CHECK(textOf(transformed.examples().value(), transformed.batchSize().value()) == "6 4");
  Batch batch;
  transformed.reset(0);
  REQUIRE(transformed.next(batch));
  CHECK(batch.features.front().value.toString() == "uint8 [4, 3, 4, 5] on cpu");
  CHECK(batch.labels.front().value.shape() == Shape{4});
}

TEST_CASE("all shifts are equally likely, and so are both sides of a flip") {
  constexpr int kCount = 50000;
  auto data = dataOf(kCount, {1, 7, 7}, DType::UInt8, 500);
  TransformingIterator crop(data, {RandomCrop{.padding = 2}}, 1);
  std::map<int, int> shifts;  // by the middle pixel, which is never shifted out of the image
  for (const Image& image : imagesOfRest(crop)) ++shifts[image[24]];
  CHECK(shifts.size() == 25);
  // 2000 each; five standard deviations of a binomial are 219.
  for (const auto& [pixel, count] : shifts) CHECK(std::abs(count - kCount / 25) < 219);
  for (const double probability : {0.5, 0.1, 1.0}) {
    TransformingIterator flip(data, {RandomFlip{.probability = probability}}, 1);
    const auto images = imagesOf(flip, 0);
    const auto mirrored = std::ranges::count_if(images, [](const Image& image) { return image[0] == 7; });
    CHECK(std::abs(static_cast<double>(mirrored) - probability * kCount) <
          5 * std::sqrt(kCount * probability * (1 - probability)) + 1);
  }
}

TEST_CASE("random numbers depend only on seed, position in the list and epoch") {
  const auto images = [](std::int64_t batch, std::uint64_t seed, std::int64_t epoch, int prefetch = 0) {
    auto data = dataOf(40, {1, 6, 6}, DType::UInt8, batch);
    TransformingIterator transformed(data, kBoth, seed);
    PrefetchingIterator ahead(transformed, prefetch);
    return imagesOf(ahead, epoch);
  };
  const auto usual = images(4, 1, 0);
  for (const std::int64_t batch : {1, 7, 40}) CHECK(images(batch, 1, 0) == usual);
  for (const int prefetch : {1, 5}) CHECK(images(7, 1, 0, prefetch) == usual);
  CHECK(images(4, 2, 0) != usual);
  CHECK(images(4, 1, 1) != usual);
  CHECK(images(7, 1, 1) == images(4, 1, 1));
  // Two transforms of one type draw different numbers; else two flips would always undo each other.
  auto data = dataOf(200, {1, 1, 2});
  TransformingIterator twice(data, {RandomFlip{}, RandomFlip{}}, 1);
  const auto flipped = imagesOfRest(twice);
  CHECK(std::abs(std::ranges::count(flipped, Image{2, 1}) - 100) < 40);
}

TEST_CASE("an image smaller than the padding may be shifted out entirely, leaving zeros") {
  auto data = dataOf(300, {1, 2, 1});
  TransformingIterator transformed(data, {RandomCrop{.padding = 9}}, 1);
  const auto images = imagesOfRest(transformed);
  const std::set<Image> seen(images.begin(), images.end());
  CHECK(std::ranges::includes(std::set<Image>{{0, 0}, {0, 1}, {1, 2}, {2, 0}}, seen));
}

/// A user-defined transform.
struct Inverted {
  static constexpr std::string_view kType = "inverted";
  void apply(const ImageView& view, const std::byte* from, std::byte* to, const RandomStream&,
             std::uint64_t) const {
    const auto bytes = static_cast<std::size_t>(view.channels * view.height * view.width) * view.elementBytes;
    std::transform(from, from + bytes, to, [](std::byte b) { return ~b; });
  }
  void validate() const {}
};

TEST_CASE("the list may contain a user-defined transform") {
  auto data = dataOf(1, {1, 1, 3});
  TransformingIterator transformed(data, {Inverted{}, RandomFlip{.probability = 1}}, 1);
  CHECK(imagesOfRest(transformed) == std::vector<Image>{{252, 253, 254}});
}

TEST_CASE("after the first batch, transforms allocate nothing") {
  const auto allocationsOf = [](DataSetIterator& data) {
    Batch batch;
    REQUIRE(data.next(batch));
    return allocationsIn([&] {
      for (bool more = true; more;) more = data.next(batch);
    });
  };
  auto data = dataOf(64, {3, 8, 8}), others = dataOf(64, {3, 8, 8});
  TransformingIterator transformed(others, kBoth, 1);
  CHECK(allocationsOf(transformed) == allocationsOf(data));
}

TEST_CASE("invalid transforms and images of an unexpected rank are refused") {
  auto data = dataOf(8, {4, 4});
  const auto refusal = [&](std::vector<ImageTransform> transforms) {
    return thrown<InvalidArgument>([&] { TransformingIterator(data, transforms, 1); });
  };
  CHECK(refusal({}) == "image transform: there is none in the list");
  CHECK(refusal({RandomCrop{.padding = 0}}) ==
        "random crop: the padding must be between 1 and 1048576 pixels, got 0");
  CHECK(refusal({RandomFlip{.probability = 0}}) ==
        "random flip: the probability must be above 0 and at most 1, got 0");
  CHECK(refusal({RandomFlip{.probability = 1.5}}).ends_with("got 1.5"));
  TransformingIterator transformed(data, {RandomFlip{}}, 1);
  Batch batch;
  const auto text = thrown<InvalidArgument>([&] { transformed.next(batch); });
  CHECK(text.starts_with("image transform: expected uint8 or float32 images [N, C, H, W] on the CPU, got "));
  CHECK_CONTAINS(text, "[4, 4, 4]");
}

}  // namespace
}  // namespace muster::test
