#include "muster/core/backend/cpu/time_first.h"

#include <numeric>
#include "tests/support/test.h"

namespace muster {
namespace {

using cpu::TimeFirst;

/// 1, 2, 3, ...
std::vector<float> counted(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST_CASE("sequences are copied to time-first order and back, zero at padding, with any number of threads") {
  constexpr std::int64_t kBatch = 2, kSteps = 3, kFeatures = 2, kAll = kBatch * kSteps * kFeatures;
  const auto sequences = counted(kAll);  // example 0: 1 2, 3 4, 5 6; example 1: 7 8, 9 10, 11 12
  Tensor mask = Tensor::zeros({kBatch, kSteps});
  for (const int real : {0, 1, 3}) mask.data<float>()[real] = 1;  // the last of example 0 is padding, ...
  for (const int threads : {1, 2, 4}) {
    Context context(Device::cpu(), {.threads = threads});
    const TimeFirst order(kBatch, kSteps, 4096, context);
    std::vector<float> inside(kAll, -1), outside(kAll, -1);
    order.load(sequences.data(), {}, kFeatures, inside.data());
    CHECK(inside == std::vector<float>{1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12});
    order.store(inside.data(), {}, kFeatures, outside.data());
    CHECK(outside == sequences);
    outside.assign(kAll, -1);
    order.storeAll(inside.data(), kFeatures, outside.data());
    CHECK(outside == sequences);

    order.load(sequences.data(), mask, kFeatures, inside.data());
    CHECK(inside == std::vector<float>{1, 2, 7, 8, 3, 4, 0, 0, 0, 0, 0, 0});
    const auto all = counted(kAll);
    order.store(all.data(), mask, kFeatures, outside.data());
    CHECK(outside == std::vector<float>{1, 2, 5, 6, 0, 0, 3, 4, 0, 0, 0, 0});
  }
}

TEST_CASE("a step is added where it is real") {
  Context context;
  const TimeFirst order(2, 3, 1, context);
  const auto sequences = counted(12);
  Tensor mask = Tensor::zeros({2, 3});
  mask.data<float>()[4] = 1;  // step 1 of example 1
  std::vector<float> sums{100, 100, 100, 100};
  order.addStep(sequences.data(), mask, 1, 2, sums.data());
  CHECK(sums == std::vector<float>{100, 100, 109, 110});
  order.addStep(sequences.data(), {}, 2, 2, sums.data());
  CHECK(sums == std::vector<float>{105, 106, 120, 122});
}

}  // namespace
}  // namespace muster
