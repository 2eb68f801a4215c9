#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "muster/core/base/dtype.h"

namespace muster::detail {

/// safetensors' names of our element types.
inline constexpr std::array<std::pair<DType, std::string_view>, 4> kSafetensorsDTypes{{
    {DType::Float32, "F32"},
    {DType::Float64, "F64"},
    {DType::UInt8, "U8"},
    {DType::Int64, "I64"},
}};

/// Element types of two bytes, which are read as float32.
inline constexpr std::string_view kFloat16 = "F16", kBfloat16 = "BF16";

constexpr std::string_view safetensorsName(DType dtype) {
  for (const auto& [candidate, name] : kSafetensorsDTypes)
    if (candidate == dtype) return name;
  return "?";
}

/// The element type of a tensor's values once they are read; empty if they cannot be.
constexpr std::optional<DType> safetensorsDType(std::string_view name) {
  for (const auto& [dtype, candidate] : kSafetensorsDTypes)
    if (candidate == name) return dtype;
  if (name == kFloat16 || name == kBfloat16) return DType::Float32;
  return std::nullopt;
}

}  // namespace muster::detail
