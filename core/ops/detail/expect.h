#pragma once

#include <string_view>

#include "muster/core/tensor/tensor.h"

namespace muster::detail {

/// The required shape, type, layout and device of a tensor.
struct Expected {
  Shape shape;
  Layout layout = Layout::RowMajor;
  DType dtype = DType::Float32;
  Device device = Device::cpu();
};

/// Checks an argument: `conv2d: x is float32 [2, 3] on cpu, expected float32 [2, 4] on cpu`. Allocates only
/// if it throws, so training steps may call it.
/// @throws InvalidArgument unless `tensor` is as expected.
void expectTensor(std::string_view op, std::string_view name, const Tensor& tensor, const Expected& expected);

/// Checks that `tensor` is float32 and equal to `other` in shape, layout and device.
void expectLike(std::string_view op, std::string_view name, const Tensor& tensor, const Tensor& other);

/// For an op without a GPU kernel. @throws DeviceUnavailable unless `tensor` is on the CPU.
void expectOnCpu(std::string_view op, const Tensor& tensor);

}  // namespace muster::detail
