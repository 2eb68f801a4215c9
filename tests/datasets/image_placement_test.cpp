#include "muster/datasets/image_placement.h"

#include "muster/datasets/generated_digits.h"
#include "tests/support/devices.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using Wish = PlacementWish;

constexpr std::size_t kMega = 1'000'000;

const std::vector<GpuMemory> kOne{{Device::cuda(1), 1000 * kMega}};
const std::vector<GpuMemory> kTwo{{Device::cuda(0), 1000 * kMega}, {Device::cuda(1), 100 * kMega}};

void check(const ImagePlacement& chosen, MemoryPlacement placement, DType features,
           const std::string& notice) {
  CHECK(chosen.placement == placement);
  CHECK((chosen.features == features));
  CHECK(chosen.why == notice);
}

/// Digits to train and to test with.
struct Digits {
  GeneratedDigitsIterator train{8, 20, 1, true}, test{8, 10, 1, false};

  std::string place(Wish wish, const std::vector<Device>& devices, int workers) {
    return placeImages(std::array<ImageSetIterator*, 2>{&train, &test}, wish, devices, workers).why;
  }
};

/// What the next batch of an iterator holds.
Batch firstOf(DataSetIterator& images) {
  Batch batch;
  images.reset(0);
  REQUIRE(images.next(batch));
  return batch;
}

TEST_CASE("workers on the CPU get floats, and no line is printed unless a placement was asked for") {
  check(choosePlacement(Wish::Auto, {}, kMega), MemoryPlacement::Host, DType::Float32, "");
  check(choosePlacement(Wish::Host, {}, kMega), MemoryPlacement::Host, DType::Float32,
        "images: on the CPU, where the workers are");
  check(choosePlacement(Wish::Auto, {}, kMega, "they are moved"), MemoryPlacement::Host, DType::Float32, "");
  CHECK(choosePlacement(Wish::Device, {}, kMega).placement == MemoryPlacement::Device);
  CHECK(choosePlacement(Wish::Device, {}, kMega).why ==
        "images: on the CPU, where the workers are; batches name rows of them");
}

TEST_CASE("on one GPU the images are stored whole unless the option says otherwise") {
  check(choosePlacement(Wish::Auto, kOne, 55'440'000), MemoryPlacement::Device, DType::UInt8,
        "images: whole on cuda:1, 55.4 MB of bytes and labels");
  check(choosePlacement(Wish::Device, kOne, 55'440'000), MemoryPlacement::Device, DType::UInt8,
        "images: whole on cuda:1, 55.4 MB of bytes and labels");
  check(choosePlacement(Wish::Host, kOne, kMega), MemoryPlacement::Host, DType::UInt8,
        "images: on the CPU, each batch sent as bytes");
}

TEST_CASE("each of several GPUs needs the memory, and half of the free memory is left for the training") {
  check(choosePlacement(Wish::Auto, kTwo, 50 * kMega), MemoryPlacement::Device, DType::UInt8,
        "images: whole on each of cuda:0 and cuda:1, 50 MB of bytes and labels");
  check(choosePlacement(Wish::Auto, kTwo, 50 * kMega + 1), MemoryPlacement::Host, DType::UInt8,
        "images: on the CPU, each batch sent as bytes, as 50 MB are more than half of the 100 MB that are "
        "free on cuda:1");
  // An explicit wish is granted even beyond the free memory.
  CHECK(choosePlacement(Wish::Device, kTwo, 101 * kMega).placement == MemoryPlacement::Device);
}

TEST_CASE("images that are augmented on the CPU stay there") {
  check(choosePlacement(Wish::Auto, kOne, kMega, "--augment moves them there"), MemoryPlacement::Host,
        DType::UInt8, "images: on the CPU, each batch sent as bytes, as --augment moves them there");
}

TEST_CASE("the placement applies to all iterators") {
  Digits data;
  const std::vector<Device> cpu{Device::cpu()};
  CHECK(data.place(Wish::Device, cpu, 2) ==
        "images: on the CPU, where the workers are; batches name rows of them");
  CHECK(firstOf(data.train).namesRows());
  CHECK(firstOf(data.test).namesRows());
  CHECK(data.place(Wish::Auto, cpu, 2).empty());
  for (ImageSetIterator* images : {&data.train, &data.test}) {
    const Batch batch = firstOf(*images);
    CHECK_FALSE(batch.namesRows());
    CHECK((batch.features[0].value.dtype() == DType::Float32));
  }
}

TEST_CASE("the memory of a GPU that no worker uses is not queried") {
  Digits data;
  CHECK(data.place(Wish::Auto, {Device::cpu(), Device::cuda(99)}, 1).empty());
  CHECK_THROWS_AS(data.place(Wish::Auto, {Device::cuda(99)}, 1), DeviceUnavailable);
}

TEST_CASE_ON("a few digits fit on a GPU, and are stored there as bytes", Where, test::OnGpu) {
  Digits data;
  const std::vector gpu{Where::device()};
  CHECK(data.place(Wish::Auto, gpu, 2).starts_with("images: whole on cuda:0, "));
  CHECK(firstOf(data.train).namesRows());
  CHECK(data.place(Wish::Host, gpu, 2) == "images: on the CPU, each batch sent as bytes");
  CHECK((firstOf(data.train).features[0].value.dtype() == DType::UInt8));
}

}  // namespace
}  // namespace muster
