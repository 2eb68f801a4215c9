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

/// As "device bytes: images: ...". @param moved  why the images must stay on the CPU.
std::string chosen(Wish wish, const std::vector<GpuMemory>& gpus, std::size_t bytes, const char* moved = "") {
  const auto [placement, features, why] = choosePlacement(wish, gpus, bytes, moved);
  return fmt::format("{} {}: {}", placement == MemoryPlacement::Device ? "device" : "host",
                     features == DType::UInt8 ? "bytes" : "floats", why);
}

TEST_CASE("workers on the CPU get floats, and no line is printed unless a placement was asked for") {
  CHECK(chosen(Wish::Auto, {}, kMega) == "host floats: ");
  CHECK(chosen(Wish::Auto, {}, kMega, "they are moved") == "host floats: ");
  const std::string here = "images: on the CPU, where the workers are";
  CHECK(chosen(Wish::Host, {}, kMega) == "host floats: " + here);
  CHECK(chosen(Wish::Device, {}, kMega) == "device floats: " + here + "; batches name rows of them");
}

TEST_CASE(
    "images are whole on each GPU if they take half of its free memory at most, or if it is asked for") {
  const std::string sent = "host bytes: images: on the CPU, each batch sent as bytes",
                    both = "device bytes: images: whole on each of cuda:0 and cuda:1, ";
  for (const auto wish : {Wish::Auto, Wish::Device})
    CHECK(chosen(wish, kOne, 55'440'000) ==
          "device bytes: images: whole on cuda:1, 55.4 MB of bytes and labels");
  CHECK(chosen(Wish::Host, kOne, kMega) == sent);
  CHECK(chosen(Wish::Auto, kOne, kMega, "--augment moves them there") ==
        sent + ", as --augment moves them there");
  CHECK(chosen(Wish::Auto, kTwo, 50 * kMega) == both + "50 MB of bytes and labels");
  CHECK(chosen(Wish::Auto, kTwo, 50 * kMega + 1) ==
        sent + ", as 50 MB are more than half of the 100 MB that are free on cuda:1");
  CHECK(chosen(Wish::Device, kTwo, 101 * kMega) == both + "101 MB of bytes and labels");
}

TEST_CASE(
    "the placement applies to all iterators, and a GPU that no worker uses is not asked for its memory") {
  Digits data;
  const std::vector<Device> cpu{Device::cpu()};
  CHECK(data.place(Wish::Device, cpu, 2) ==
        "images: on the CPU, where the workers are; batches name rows of them");
  for (ImageSetIterator* images : {&data.train, &data.test}) CHECK(firstOf(*images).namesRows());
  CHECK(data.place(Wish::Auto, cpu, 2).empty());
  for (ImageSetIterator* images : {&data.train, &data.test}) {
    const Batch batch = firstOf(*images);
    CHECK_FALSE(batch.namesRows());
    CHECK((batch.features[0].value.dtype() == DType::Float32));
  }
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
