#pragma once

#include <cmath>
#include <string_view>

#include "muster/core/base/random.h"
#include "muster/core/ops/reorder.h"
#include "muster/core/tensor/tensor.h"

// Inputs and checks of the programs that measure kernels.

namespace muster::bench {

/// A row-major tensor of values in [-scale / 2, scale / 2), the same each time for a name and a size.
inline Tensor randomTensor(const Shape& shape, std::string_view name, double scale = 1) {
  Tensor tensor = Tensor::empty(shape);
  const RandomStream stream(1, name);
  for (std::uint64_t i = 0; auto& value : tensor.span<float>())
    value = static_cast<float>(scale * (stream.uniform(i++) - 0.5));
  return tensor;
}

/// A copy of a float32 activation in another layout. Padding is zero.
inline Tensor inLayout(const Tensor& x, Layout layout, Context& context) {
  Tensor y = Tensor::zeros(x.shape(), DType::Float32, Device::cpu(), layout);
  reorder(x, y, context);
  return y;
}

/// Number of elements of two row-major tensors that differ by `tolerance` or more, or are NaN.
inline std::int64_t differences(const Tensor& a, const Tensor& b, float tolerance) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i)
    if (!(std::abs(a.data<float>()[i] - b.data<float>()[i]) < tolerance)) ++count;
  return count;
}

}  // namespace muster::bench
