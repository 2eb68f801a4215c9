#pragma once

#include <bit>

#include "muster/core/device/math_mode.h"
#include "tests/support/arrays.h"
#include "tests/support/devices.h"

namespace muster::test {

/// The CPU with bf16 factors in products; a type like those of devices.h.
struct OnCpuInBFloat16 : OnCpu {
  static ContextOptions options(int threads = 1) {
    return {.threads = threads, .mathMode = MathMode::BFloat16};
  }
  static std::string whyNot() {
    const auto reason = whyNoMathMode(device(), MathMode::BFloat16);
    return reason.empty() ? "" : "bf16: " + reason;
  }
  /// Each of two factors is rounded to the nearest with 8 bits; `productSumError` doubles it.
  static constexpr double kProductError = 0x1p-8;
};

/// Each number rounded to the nearest with eight significant bits, ties to even.
inline Array toBFloat16(Array array) {
  for (double& value : array.values) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    const std::uint32_t up = bits + 0x7fff + ((bits >> 16) & 1);
    value = std::bit_cast<float>(up & 0xffff0000);
  }
  return array;
}

}  // namespace muster::test

TYPE_TO_STRING_AS("cpu, bf16", muster::test::OnCpuInBFloat16);
