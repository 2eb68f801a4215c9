#pragma once

#include <string_view>

#include "muster/core/tensor/tensor.h"

namespace muster::detail {

/// What an operation wants of a tensor.
struct Expected {
  Shape shape;
  Layout layout = Layout::RowMajor;
  DType dtype = DType::Float32;
  Device device = Device::cpu();
};

/// Checks an argument, as in `conv2d: x is float32 [2, 3] on cpu, expected float32 [2, 4] on cpu`. Allocates
/// nothing unless it throws, so that it may stand in a training step.
/// @throws InvalidArgument unless `tensor` is as expected.
void expectTensor(std::string_view op, std::string_view name, const Tensor& tensor, const Expected& expected);

/// Checks that `tensor` is float32 and in shape, layout and device like `other`.
void expectLike(std::string_view op, std::string_view name, const Tensor& tensor, const Tensor& other);

}  // namespace muster::detail
