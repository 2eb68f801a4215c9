#include <cstring>

#include "muster/core/data/image_transform.h"
#include "muster/core/data/in_memory.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kExamples = 50, kHeight = 5, kWidth = 6, kPixels = kHeight * kWidth;

/// Converts images to rows for the toy model.
class AsRows final : public DataSetIterator {
 public:
  explicit AsRows(DataSetIterator& images) : images_(images) {}
  void reset(std::int64_t epoch) override { images_.reset(epoch); }
  bool next(Batch& batch) override {
    if (!images_.next(taken_)) return false;
    const Tensor& image = taken_.features.front().value;
    const Tensor& rows = Batch::ensureOnly(batch.features, "x", {image.shape()[0], kPixels});
    std::memcpy(rows.raw(), image.raw(), image.bytes());
    return true;
  }

 private:
  DataSetIterator& images_;
  Batch taken_;
};

Tensor countingImages() {
  Tensor images = Tensor::empty({kExamples, 1, kHeight, kWidth});
  for (std::int64_t i = 0; i < images.elements(); ++i) images.data<float>()[i] = static_cast<float>(i);
  return images;
}

using Seen = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<float>>;

/// All images used for training, [epoch, position in the epoch].
Seen imagesSeen(int workers, std::int64_t batch, std::int64_t prefetch) {
  Seen seen;
  std::mutex mutex;
  ToyModel model({.size = kPixels});
  model.control().onStep = [&](const Batch& step) {
    const std::scoped_lock lock(mutex);
    const float* pixels = step.features.front().value.data<float>();
    for (std::int64_t n = 0; n < step.examples(); ++n, pixels += kPixels)
      seen[{step.stamp.epoch, step.stamp.firstExample + n}].assign(pixels, pixels + kPixels);
  };
  InMemoryDataSetIterator images(countingImages(), Tensor::zeros({kExamples}, DType::Int64), batch, 3);
  TransformingIterator transformed(images, {RandomCrop{.padding = 2}, RandomFlip{}}, 3);
  AsRows data(transformed);
  toyWrapper(model, workers).prefetchBuffer(prefetch).build().fit(data, 2);
  return seen;
}

}  // namespace

TEST_CASE("workers get the same transformed images, for any number of workers and any prefetch") {
  const Seen one = imagesSeen(1, 4, 0);
  CHECK(one.size() == 2 * kExamples);
  for (const int workers : {1, 2, 3, 5})
    for (const std::int64_t batch : {4, 7})
      for (const std::int64_t prefetch : {0, 1, 16}) {
        CAPTURE(workers);
        CAPTURE(batch);
        CAPTURE(prefetch);
        CHECK(imagesSeen(workers, batch, prefetch) == one);
      }
}
