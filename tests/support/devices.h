#pragma once

#include <doctest/doctest.h>

#include "muster/core/device/context.h"
#include "muster/core/tensor/layout.h"
#include "tests/support/skip.h"
#include "tests/support/standard.h"

namespace muster::test {

// The devices of a test body: TEST_CASE_ON("...", Where, MUSTER_TEST_DEVICES) { ... } Each is a type with a
// device, a math mode, and the reason why it is not available ("" if it is). `./run gpu` runs the cases with
// "gpu", "cuda" or "pinned" in their names: the cases of OnGpu, and others that need a GPU.

struct OnCpu {
  static Device device() { return Device::cpu(); }
  static ContextOptions options(int threads = 1) { return {.threads = threads}; }
  static std::string whyNot() { return ""; }
  /// Layouts of activations inside a program.
  static std::vector<Layout> layouts() {
    return {Layout::RowMajor, Layout::ChannelsLast, Layout::ChannelBlocks, Layout::SampleBlocks};
  }
  /// Relative error of a sum of products against float32, from rounding the factors.
  static constexpr double kProductError = 0;
};

struct OnGpu {
  static Device device() { return Device::cuda(0); }
  static ContextOptions options(int threads = 1) {
    return {.threads = threads, .mathMode = MathMode::Float32};
  }
  static std::string whyNot() { return whyNoCuda(); }
  static std::vector<Layout> layouts() { return {Layout::RowMajor, Layout::ChannelsLast}; }
  static constexpr double kProductError = 0;
};

struct OnGpuInTensorFloat32 : OnGpu {
  static ContextOptions options(int threads = 1) {
    return {.threads = threads, .mathMode = MathMode::TensorFloat32};
  }
  static std::string whyNot() {
    if (const auto reason = whyNoCuda(); !reason.empty()) return reason;
    return propertiesOf(device()).tensorFloat32 ? "" : "this GPU has no TF32";
  }
  static constexpr double kProductError = 0x1p-10;  // both factors lose all but 10 bits
};

struct OnGpuInBFloat16 : OnGpuInTensorFloat32 {
  static ContextOptions options(int threads = 1) {
    return {.threads = threads, .mathMode = MathMode::BFloat16};
  }
  static constexpr double kProductError = 0x1p-7;
};

/// Thread counts for a test body: all of `counts` on the CPU; one on a GPU, whose results do not depend on
/// threads.
template <typename Where>
std::vector<int> threadCounts(std::initializer_list<int> counts) {
  return Where::device().isCpu() ? std::vector<int>(counts) : std::vector<int>{1};
}

}  // namespace muster::test

TYPE_TO_STRING_AS("cpu", muster::test::OnCpu);
TYPE_TO_STRING_AS("gpu", muster::test::OnGpu);
TYPE_TO_STRING_AS("gpu, tf32", muster::test::OnGpuInTensorFloat32);
TYPE_TO_STRING_AS("gpu, bf16", muster::test::OnGpuInBFloat16);

/// For operations without matrix products.
#define MUSTER_TEST_DEVICES ::muster::test::OnCpu, ::muster::test::OnGpu
/// For matrix products and convolutions.
#define MUSTER_TEST_MATH_MODES \
  MUSTER_TEST_DEVICES, ::muster::test::OnGpuInTensorFloat32, ::muster::test::OnGpuInBFloat16

#define MUSTER_NEEDS_DEVICE(Where)                                                             \
  do {                                                                                         \
    if (const std::string why = Where::whyNot(); !why.empty()) return muster::test::skip(why); \
  } while (false)

/// A case for each of some devices, skipped on those that are not available.
#define TEST_CASE_ON(name, Where, ...) \
  MUSTER_TEST_CASE_ON(name, Where, DOCTEST_ANONYMOUS(onDevice), __VA_ARGS__)
#define MUSTER_TEST_CASE_ON(name, Where, body, ...) \
  template <typename Where>                         \
  static void body();                               \
  TEST_CASE_TEMPLATE(name, Where, __VA_ARGS__) {    \
    MUSTER_NEEDS_DEVICE(Where);                     \
    body<Where>();                                  \
  }                                                 \
  template <typename Where>                         \
  static void body()

/// The same for operations without matrix products, and for those with them; the device's type is `Where`.
#define TEST_ON_DEVICES(name) TEST_CASE_ON(name, Where, MUSTER_TEST_DEVICES)
#define TEST_IN_MATH_MODES(name) TEST_CASE_ON(name, Where, MUSTER_TEST_MATH_MODES)
