#pragma once

#include <cstdint>
#include <memory>

#include "muster/core/base/size2d.h"
#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {
/// What pooling takes of a window.
enum class PoolKind { Max, Average };
/// The sizes of a pooling.
struct Pool2dShape {
  PoolKind kind = PoolKind::Max;
  std::int64_t batch = 1, channels = 1, height = 1, width = 1;
  Size2d kernel{2, 2};
  Size2d stride{2, 2};
  Size2d padding{0, 0};  ///< at most half the kernel

  Shape input() const { return {batch, channels, height, width}; }
  /// [N, C, (H + 2 padding - kernel) / stride + 1, ...], rounded down.
  Shape output() const;
  /// @throws InvalidArgument naming the sizes.
  void validate() const;
};

/// Pooling planned for one shape and layout, the same for input and output. `forward` keeps what `backward`
/// needs. One thread at a time.
///
/// Maximum: padding is never the maximum; the first of equal values in row-major order gets the gradient; NaN
/// is larger than all values. Average: divides by the whole kernel, with padding as zeros (PyTorch's
/// default).
class Pool2dPlan {
 public:
  virtual ~Pool2dPlan() = default;
  virtual Layout layout() const = 0;
  virtual void forward(const Tensor& x, Tensor& y) = 0;
  /// gradX is overwritten. Uses what the last `forward` kept.
  virtual void backward(const Tensor& gradY, Tensor& gradX) = 0;
};

/// @throws InvalidArgument for an invalid shape.
std::unique_ptr<Pool2dPlan> planPool2d(const Pool2dShape& shape, Layout layout, Context& context);

namespace cpu {
std::unique_ptr<Pool2dPlan> planPool2d(const Pool2dShape& shape, Layout layout, Context& context);
}
namespace cuda {
std::unique_ptr<Pool2dPlan> planPool2d(const Pool2dShape& shape, Layout layout, Context& context);
}

}  // namespace muster
