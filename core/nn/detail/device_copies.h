#pragma once

#include "muster/core/tensor/tensor.h"

namespace muster::detail {

/// Copies, on the context's device, of tensors that a caller holds on the CPU. They are kept for the next
/// call. On the CPU there are none: the caller's tensors are used as they are.
class DeviceCopies {
 public:
  explicit DeviceCopies(Context& context) : context_(context) {}

  /// `input` on the device.
  const Tensor& of(const Tensor& input);
  /// Where to compute a float32 tensor that `out`, on the CPU, is to hold: `out` itself on the CPU.
  Tensor& resultFor(Tensor& out);
  /// Copies what was computed to `out`, unless it is there, and waits for it.
  void fetch(const Tensor& from, Tensor& out);

 private:
  Context& context_;
  Tensor input_, result_;
};

}  // namespace muster::detail
