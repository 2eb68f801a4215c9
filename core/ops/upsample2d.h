#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "muster/core/base/fields.h"
#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {
/// How new pixels get their values.
enum class UpsampleMode { Nearest, Bilinear };

template <>
struct EnumNames<UpsampleMode> {
  static constexpr std::array<std::pair<UpsampleMode, std::string_view>, 2> kNames{{
      {UpsampleMode::Nearest, "nearest"},
      {UpsampleMode::Bilinear, "bilinear"},
  }};
};

/// Enlarges images by integer factors s: y's height and width are multiples of x's. float32 [N, C, H, W] in
/// any layout, the same for both.
///
/// Nearest: y[o] = x[floor(o / s)] in each direction.
/// Bilinear: output pixel o is at p = max(0, (o + 1/2) / s - 1/2) of the input; with i = floor(p) and t = p -
/// i, y[o] = (1 - t) x[i] + t x[min(i + 1, size - 1)], in both directions (align_corners = false in other
/// libraries).
/// @throws InvalidArgument unless y's sizes are multiples of x's.
void upsample2d(UpsampleMode mode, const Tensor& x, Tensor& y, Context& context);

/// gradX = d loss / d x; overwritten.
void upsample2dBackward(UpsampleMode mode, const Tensor& gradY, Tensor& gradX, Context& context);

namespace cpu {
void upsample2d(UpsampleMode mode, const Tensor& x, Tensor& y, Context& context);
void upsample2dBackward(UpsampleMode mode, const Tensor& gradY, Tensor& gradX, Context& context);
}  // namespace cpu
namespace cuda {
void upsample2d(UpsampleMode mode, const Tensor& x, Tensor& y, Context& context);
void upsample2dBackward(UpsampleMode mode, const Tensor& gradY, Tensor& gradX, Context& context);
}  // namespace cuda

}  // namespace muster
