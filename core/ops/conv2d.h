#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/base/size2d.h"
#include "muster/core/device/context.h"
#include "muster/core/ops/activation.h"
#include "muster/core/ops/pool2d.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// Sizes of a two-dimensional convolution (cross-correlation).
struct Conv2dShape {
  std::int64_t batch = 1;
  std::int64_t inChannels = 1;
  std::int64_t height = 1, width = 1;  ///< of the input
  std::int64_t outChannels = 1;
  Size2d kernel{1, 1};
  Size2d stride{1, 1};
  Size2d padding{0, 0};  ///< zeros on each side
  Size2d dilation{1, 1};
  /// Divides both channel counts: output channels [g out / groups, (g + 1) out / groups) only depend on input
  /// channels [g in / groups, (g + 1) in / groups). As many groups as input channels make a depthwise
  /// convolution.
  std::int64_t groups = 1;

  Shape input() const { return {batch, inChannels, height, width}; }
  Shape weight() const { return {outChannels, inChannels / groups, kernel[0], kernel[1]}; }
  /// [N, outChannels, (H + 2 padding - dilation (kernel - 1) - 1) / stride + 1, ...], rounded down.
  Shape output() const;
  /// @throws InvalidArgument naming the sizes if one is not positive, the groups do not divide the channels,
  ///         or the kernel does not fit the input.
  void validate() const;
};

/// The implementation of a plan.
enum class Conv2dChoice {
  Auto,            ///< chosen by shape and offered layout, deterministically
  RowMajor,        ///< the library's, with activations [N, C, H, W]
  ChannelsLast,    ///< the library's, with activations [N, H, W, C]
  ChannelBlocks,   ///< the library's, with output in blocks of 16 channels (input too, unless it has few
                   ///< channels)
  Winograd,        ///< our own for 3x3 kernels on the CPU, in blocks of 16 channels, with slightly larger
                   ///< rounding errors
  PaddedChannels,  ///< a GPU's ChannelsLast, with channels padded with zeros to what tensor cores take; for
                   ///< one group
  /// Our own kernels, for one group. On the CPU for stride and dilation 1, with activations in blocks of 16
  /// samples; on a GPU for few input channels, row-major, always in float32.
  Direct,
  /// Our own kernels on a GPU's tensor cores, row-major: small images, one group, stride 1, at most 64 output
  /// channels; factors are rounded to TF32, also in bf16 mode. Not for float32 mode.
  ImplicitGemm,
};

/// A convolution planned for one shape: layouts are chosen, primitives and scratch memory created. Running it
/// allocates nothing of ours. Belongs to the context it was planned for; one thread at a time.
///
/// Weights are canonical: float32 [outChannels, inChannels / groups, kernel, kernel] and bias [outChannels],
/// RowMajor.
class Conv2dPlan {
 public:
  virtual ~Conv2dPlan() = default;
  virtual Layout inputLayout() const = 0;
  virtual Layout outputLayout() const = 0;
  /// The choice, for reports.
  virtual std::string implementation() const = 0;

  /// Includes an activation if the plan supports it: `forward` then gives activation(conv(x, weight) + bias).
  /// Call it once, before the first run. @return whether the plan includes it.
  virtual bool fuse(Activation) { return false; }
  /// Includes a pooling of the output if the plan supports it: y and gradY are then the pooled ones, and the
  /// bits are those of the two plans one after the other. Call it once, after `fuse` and before the first
  /// run.
  /// @return whether the plan includes it.
  virtual bool fusePool(const Pool2dShape&) { return false; }
  /// Whether `backwardWeights` may run at the same time as `backwardData`: neither writes memory that the
  /// other uses.
  virtual bool gradientsApart() const { return false; }

  /// y = conv(x, weight) + bias. `bias` may be undefined. x in inputLayout(), y in outputLayout().
  virtual void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) = 0;
  /// gradX = d loss / d x; overwritten. gradX in inputLayout(), gradY in outputLayout().
  virtual void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) = 0;
  /// gradWeight and gradBias (which may be undefined) are overwritten.
  virtual void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight,
                               Tensor& gradBias) = 0;
};

/// @param offered  the layout of the input, if known: `Auto` chooses the library's blocks of channels if that
///         saves a reorder.
/// @throws InvalidArgument for an invalid shape, or a choice that does not support this shape.
std::unique_ptr<Conv2dPlan> planConv2d(const Conv2dShape& shape, Context& context,
                                       Conv2dChoice choice = Conv2dChoice::Auto,
                                       Layout offered = Layout::RowMajor);

namespace cpu {
std::unique_ptr<Conv2dPlan> planConv2d(const Conv2dShape& shape, Context& context, Conv2dChoice choice,
                                       Layout offered);
}  // namespace cpu
namespace cuda {
std::unique_ptr<Conv2dPlan> planConv2d(const Conv2dShape& shape, Context& context, Conv2dChoice choice,
                                       Layout offered);
}  // namespace cuda

}  // namespace muster
