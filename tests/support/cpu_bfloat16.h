#pragma once

#include <string>

#include "muster/core/device/math_mode.h"
#include "tests/support/devices.h"

namespace muster::test {

/// The CPU with bf16 factors in products; a type like those of devices.h.
struct OnCpuInBFloat16 : OnCpu {
  static ContextOptions options() { return {.mathMode = MathMode::BFloat16}; }
  static std::string whyNot() {
    const auto reason = whyNoMathMode(device(), MathMode::BFloat16);
    return reason.empty() ? "" : "bf16: " + reason;
  }
  /// Each of two factors is rounded to the nearest with 8 bits; `productSumError` doubles it.
  static constexpr double kProductError = 0x1p-8;
};

}  // namespace muster::test

TYPE_TO_STRING_AS("cpu, bf16", muster::test::OnCpuInBFloat16);
