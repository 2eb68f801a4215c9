#include "muster/core/backend/cuda/conv2d_table.h"

#include "muster/core/backend/cuda/padded_conv2d.h"
#include "tests/support/test.h"

namespace muster::cuda {
namespace {

constexpr Conv2dShape kSecond{
    .batch = 128, .inChannels = 20, .height = 12, .width = 12, .outChannels = 50, .kernel = {5, 5}};

TEST_CASE("a measured choice applies only to its compute capability, math mode, channels and kernel") {
  const std::vector<MeasuredConv2d> table{
      {90, MathMode::TensorFloat32, 20, 50, 5, Conv2dChoice::PaddedChannels},
      {90, MathMode::BFloat16, 20, 50, 5, Conv2dChoice::RowMajor}};
  const auto choice = [&](int capability, const Conv2dShape& shape, MathMode mode) {
    return measuredChoice(table, capability, shape, mode);
  };
  CHECK(choice(90, kSecond, MathMode::TensorFloat32) == Conv2dChoice::PaddedChannels);
  CHECK(choice(90, kSecond, MathMode::BFloat16) == Conv2dChoice::RowMajor);
  CHECK(choice(90, kSecond, MathMode::Float32) == Conv2dChoice::Auto);
  CHECK(choice(80, kSecond, MathMode::TensorFloat32) == Conv2dChoice::Auto);
  for (auto change : {+[](Conv2dShape& s) { s.inChannels = 16; }, +[](Conv2dShape& s) { s.outChannels = 64; },
                      +[](Conv2dShape& s) {
                        s.kernel = {5, 3};
                      },
                      +[](Conv2dShape& s) { s.groups = 10; }}) {
    Conv2dShape other = kSecond;
    change(other);
    CHECK(choice(90, other, MathMode::TensorFloat32) == Conv2dChoice::Auto);
  }
  Conv2dShape larger = kSecond;
  larger.batch = 64;
  CHECK(choice(90, larger, MathMode::TensorFloat32) == Conv2dChoice::PaddedChannels);
}

TEST_CASE("channels are padded to a number that tensor cores can process") {
  const auto channels = [](MathMode mode) {
    const Conv2dShape padded = paddedChannels(kSecond, mode);
    CHECK(padded.height == kSecond.height);
    return std::pair(padded.inChannels, padded.outChannels);
  };
  CHECK(channels(MathMode::TensorFloat32) == std::pair<std::int64_t, std::int64_t>(20, 52));
  CHECK(channels(MathMode::BFloat16) == std::pair<std::int64_t, std::int64_t>(24, 56));
  CHECK(channels(MathMode::Float32) == std::pair<std::int64_t, std::int64_t>(20, 50));
}

}  // namespace
}  // namespace muster::cuda
