#pragma once

#include <fmt/format.h>

#include <string_view>

#include "muster/core/tensor/tensor.h"

/// @cond
// `fmt::format("{}", tensor)` is muster::valuesText.
template <>
struct fmt::formatter<muster::Tensor> : fmt::formatter<std::string_view> {
  auto format(const muster::Tensor& tensor, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(muster::valuesText(tensor), context);
  }
};
/// @endcond
