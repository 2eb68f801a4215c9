#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/core/nn/module.h"

namespace muster {

/// Maximum over windows of a sequence, feature by feature: [T, F] to [T', F], T' = (T + 2 padding - kernel) /
/// stride + 1, rounded down. A stride of 0 is the kernel's size. Padding is never the maximum.
///
/// Ignores masks: padded steps count with the values that they hold.
struct MaxPool1d {
  static constexpr std::string_view kType = "maxpool1d";
  static constexpr PaddingUse kPaddingUse = PaddingUse::Mixes;

  std::int64_t kernel = 2;
  std::int64_t stride = 0;
  std::int64_t padding = 0;
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

/// Mean over windows, padding counted as zeros. Sizes and masks as for MaxPool1d.
struct AveragePool1d {
  static constexpr std::string_view kType = "avgpool1d";
  static constexpr PaddingUse kPaddingUse = PaddingUse::Mixes;

  std::int64_t kernel = 2;
  std::int64_t stride = 0;
  std::int64_t padding = 0;
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
