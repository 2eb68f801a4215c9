#pragma once

#include "muster/core/tensor/tensor.h"

namespace muster::detail {

/// Copies, on the context's device, of a caller's tensors on the CPU. Their memory is kept for the next call.
/// On the CPU the caller's tensors are used directly.
class DeviceCopies {
 public:
  explicit DeviceCopies(Context& context) : context_(context) {}

  /// `input` on the device.
  const Tensor& of(const Tensor& input);
  /// The tensor to compute into for a float32 `out` on the CPU; on the CPU `out` itself.
  Tensor& resultFor(Tensor& out);
  /// Copies the result to `out`, unless it is there, and waits.
  void fetch(const Tensor& from, Tensor& out);

 private:
  Context& context_;
  Tensor input_, result_;
};

}  // namespace muster::detail
