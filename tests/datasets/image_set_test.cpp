#include "muster/datasets/image_set.h"

#include "muster/datasets/generated_digits.h"
#include "muster/datasets/image_set_iterator.h"
#include "tests/datasets/gzip.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::idx;
using test::thrown;

/// `count` images of 2 by 3 pixels; image i is labelled i % 10 and its pixels are 10 i, 10 i + 1, ...
std::shared_ptr<const ImageSet> someImages(int count) {
  std::vector<std::uint8_t> pixels, labels;
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < 6; ++j) pixels.push_back(static_cast<std::uint8_t>(10 * i + j));
    labels.push_back(static_cast<std::uint8_t>(i % 10));
  }
  return std::make_shared<const ImageSet>(pixels, Shape{1, 2, 3}, labels, 10, "made here");
}

FileContents file(const std::string& name, const std::string& bytes) {
  return {name, {bytes.begin(), bytes.end()}};
}

TEST_CASE("two IDX files make an image set") {
  const test::TemporaryDirectory directory;
  test::writeFile(directory / "images.gz", test::gzip(idx({2, 2, 3}, "abcdefghijkl")));
  test::writeFile(directory / "labels", idx({2}, "\x03\x01"));
  const auto set = readIdxImageSet(directory / "images.gz", directory / "labels", 4);
  CHECK(set->origin() == directory / "labels");
  CHECK(set->size() == 2);
  CHECK(set->classes() == 4);
  CHECK(set->imageShape() == Shape{1, 2, 3});
  CHECK(std::string(set->image(1).begin(), set->image(1).end()) == "ghijkl");
  CHECK(set->label(0) == 3);
}

TEST_CASE("files that do not fit together are refused, and the error gives their names and numbers") {
  const auto refusal = [](const std::string& images, const std::string& labels) {
    return thrown<FileError>([&] { idxImageSet(file("I", images), file("L", labels), 10); });
  };
  const auto images = idx({2, 1, 1}, "ab"), labels = idx({2}, std::string("\x01\x02"));
  CHECK(refusal(images, labels).empty());
  CHECK_CONTAINS(refusal(images, idx({3}, "\x01\x02\x03")), "L: 3 labels");
  CHECK_CONTAINS(refusal(images, idx({3}, "\x01\x02\x03")), "I holds 2");
  CHECK_CONTAINS(refusal(labels, images), "I: images");
  CHECK_CONTAINS(refusal(labels, images), "uint8 [2]");
  CHECK_CONTAINS(refusal(images, idx({2, 1}, "\x01\x02")), "L: labels");
  CHECK_CONTAINS(refusal(images, test::idxHead(0x0D, {1}) + "1234"), "float32");
  CHECK(refusal(idx({3, 1, 1}, "abc"), idx({3}, "\x09\x0A\x0B")) ==
        "L: label 10 of example 1 is out of range: there are 10 classes");
  const std::vector<std::int32_t> one{0};
  CHECK_THROWS_AS(ImageSet({1, 2, 3}, Shape{1, 1, 2}, one, 10, "here"), InvalidArgument);
  CHECK_THROWS_AS(ImageSet({1, 2}, Shape{1, 2}, one, 10, "here"), InvalidArgument);
}

TEST_CASE("a batch holds each byte divided by 255, and its label") {
  ImageSetIterator iterator(someImages(26), 20);  // with the bytes 0 and 255
  CHECK(iterator.examples() == 26);
  CHECK(iterator.batchSize() == 20);
  Batch batch;
  for (int first = 0; first < 26; first += 20) {
    REQUIRE(iterator.next(batch));
    const int count = first == 20 ? 6 : 20;
    const Tensor& features = batch.features.front().value;
    REQUIRE(features.shape() == Shape{count, 1, 2, 3});
    for (int i = 0; i < count; ++i) {
      CHECK(batch.labels.front().value.data<std::int64_t>()[i] == (first + i) % 10);
      for (int j = 0; j < 6; ++j)
        CHECK(features.data<float>()[6 * i + j] == static_cast<float>(10 * (first + i) + j) / 255.0f);
    }
  }
  CHECK_FALSE(iterator.next(batch));
}

std::vector<std::int64_t> labelsOf(DataSetIterator& iterator, std::int64_t epoch) {
  std::vector<std::int64_t> labels;
  Batch batch;
  iterator.reset(epoch);
  while (iterator.next(batch))
    for (const auto label : batch.labels.front().value.span<std::int64_t>()) labels.push_back(label);
  return labels;
}

TEST_CASE(
    "a shuffle depends on seed and epoch, two iterators share one set; a limit takes the first examples") {
  ImageSetIterator one(someImages(10), 4, 7), other(one.set(), 3, 7);
  CHECK(other.set().get() == one.set().get());
  CHECK(labelsOf(one, 2) == labelsOf(other, 2));
  CHECK(labelsOf(one, 2) != labelsOf(one, 3));
  for (const auto seed : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(1)}) {
    ImageSetIterator few(someImages(10), 4, seed, 3);
    auto labels = labelsOf(few, 0);
    if (seed) std::ranges::sort(labels);
    CHECK(labels == std::vector<std::int64_t>{0, 1, 2});
    CHECK(few.examples() == 3);
  }
  CHECK(ImageSetIterator(someImages(10), 4, 1, 99).examples() == 10);
}

TEST_CASE("a limit of images in order of their classes has all classes, and so have both parts of a split") {
  std::vector<std::uint8_t> pixels(600);
  std::vector<std::int32_t> labels(600);  // 300 classes, more than a byte has
  for (std::size_t i = 0; i < 600; ++i) {
    pixels[i] = static_cast<std::uint8_t>(i);
    labels[i] = static_cast<std::int32_t>(i / 2);
  }
  const auto set = std::make_shared<const ImageSet>(pixels, Shape{1, 1, 1}, labels, 300, "here");
  ImageSetIterator limited(set, 50, std::nullopt, 300);
  const auto one = labelsOf(limited, 0);
  const auto [train, validation] = split(set, 0.5, 1);
  REQUIRE(train->size() == 300);
  REQUIRE(validation->size() == 300);
  for (std::int64_t i = 0; i < 300; ++i) {
    CHECK(one[static_cast<std::size_t>(i)] == i);
    for (const auto& part : {train, validation}) CHECK(part->label(i) == i);
    CHECK(train->image(i)[0] / 2 == static_cast<std::uint8_t>(2 * i) / 2);
    CHECK(train->image(i)[0] != validation->image(i)[0]);
  }
  CHECK_REFUSED(
      split(set, 0.1, 1),
      "split: 60 examples to train with leave out a class; there are 300 classes, and each needs one");
  CHECK_THROWS_AS(set->part(std::vector<std::int64_t>{600}), InvalidArgument);
}

TEST_CASE("features may be floats, bytes or row numbers of the same images") {
  ImageSetIterator numbers(someImages(10), 4, 1), bytes(numbers.set(), 4, 1), rows(numbers.set(), 4, 1);
  bytes.setFeatures(DType::UInt8);
  rows.setPlacement(MemoryPlacement::Device);
  Batch a, b, c, gathered;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(numbers.next(a));
    REQUIRE(bytes.next(b));
    REQUIRE(rows.next(c));
    CHECK(c.namesRows());
    CHECK(c.examples() == a.examples());
    c.gatherInto(gathered);
    for (const Batch* other : std::initializer_list<const Batch*>{&b, &gathered}) {
      const Tensor& features = other->features[0].value;
      REQUIRE(features.shape() == a.features[0].value.shape());
      for (std::int64_t e = 0; e < features.elements(); ++e)
        CHECK(static_cast<float>(features.data<std::uint8_t>()[e]) / 255.0f ==
              a.features[0].value.data<float>()[e]);
      CHECK(std::ranges::equal(other->labels[0].value.span<std::int64_t>(),
                               a.labels[0].value.span<std::int64_t>()));
    }
  }
  CHECK_FALSE(rows.next(c));
  rows.setPlacement(MemoryPlacement::Host);
  rows.reset(0);
  numbers.reset(0);
  REQUIRE(rows.next(c));
  REQUIRE(numbers.next(a));
  CHECK_FALSE(c.namesRows());
  CHECK(std::ranges::equal(c.features[0].value.span<float>(), a.features[0].value.span<float>()));
  CHECK_THROWS_AS(rows.setFeatures(DType::Int64), InvalidArgument);
}

TEST_CASE("batches requested by number equal those of next()") {
  GeneratedDigitsIterator digits(8, 30, 5, true);
  ImageSetIterator bytes(digits.set(), 8, 5), rows(digits.set(), 8, 5), all(digits.set(), 8, 5);
  bytes.setFeatures(DType::UInt8);
  rows.setPlacement(MemoryPlacement::Device);
  for (ImageSetIterator* iterator : {&bytes, &rows, &all, static_cast<ImageSetIterator*>(&digits)}) {
    iterator->reset(3);
    const NumberedBatches* const numbered = iterator->numbered();
    REQUIRE(numbered != nullptr);
    CHECK(numbered->numberOfBatches() == 4);
    Batch expected, batch;
    for (std::int64_t b = 0; iterator->next(expected); ++b) {
      numbered->readBatch(b, batch);
      for (const auto list : {&Batch::features, &Batch::labels}) {
        const Tensor &a = (batch.*list).front().value, &e = (expected.*list).front().value;
        REQUIRE(a.shape() == e.shape());
        CHECK(std::memcmp(a.raw(), e.raw(), e.bytes()) == 0);
      }
    }
  }
}

TEST_CASE("a batch of row numbers outlives its iterator and its set, and invalid iterators are refused") {
  Batch batch;
  {
    ImageSetIterator rows(someImages(3), 2);
    rows.setPlacement(MemoryPlacement::Device);
    REQUIRE(rows.next(batch));
  }
  CHECK(batch.features[0].gathered().data<std::uint8_t>()[6] == 10);
  CHECK_THROWS_AS(ImageSetIterator(someImages(1), 0), InvalidArgument);
  CHECK_THROWS_AS(ImageSetIterator(someImages(1), 1, 1, 0), InvalidArgument);
  CHECK_THROWS_AS(ImageSetIterator(nullptr, 1), InvalidArgument);
}

}  // namespace
}  // namespace muster
