#include "muster/core/backend/cpu/conv/direct_conv2d.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "muster/core/backend/cpu/conv/bfloat16_direct_conv2d.h"
#include "muster/core/backend/cpu/conv/direct_conv2d_plan.h"
#include "muster/core/backend/cpu/padding.h"
#include "muster/core/backend/cpu/pool2d_kernels.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/base/error.h"

namespace muster::cpu {

direct::BlockShape direct::blockShapeOf(const Conv2dShape& shape) {
  const Shape out = shape.output();
  return {.inChannels = shape.inChannels,
          .inHeight = shape.height + 2 * shape.padding[0],
          .inWidth = shape.width + 2 * shape.padding[1],
          .outChannels = shape.outChannels,
          .outHeight = out[2],
          .outWidth = out[3],
          .kernelHeight = shape.kernel[0]};
}

namespace {

using direct::BlockShape;
using direct::Kernels;

struct Choice {
  const Kernels* kernels = nullptr;  // null if this processor or kernel width is not supported
  const char* name = "";
};

Choice kernelsFor(std::int64_t kernelWidth) {
#if defined(__x86_64__)
  if (instructionSet() == InstructionSet::Avx512)
    return {direct::avx512Kernels(kernelWidth), "direct, AVX-512"};
  if (instructionSet() == InstructionSet::Avx2) return {direct::avx2Kernels(kernelWidth), "direct, AVX2"};
#else
  static_cast<void>(kernelWidth);
#endif
  return {};
}

/// Like the activation function: NaN stays NaN.
[[gnu::always_inline]] inline void reluLoop(float* y, std::int64_t count) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < count; ++i) y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

/// An element of the packed weights holds one weight.
constexpr auto only = [](const float* weight, std::int64_t, std::int64_t) { return *weight; };

class DirectConv2dPlan final : public direct::DirectPlan {
 public:
  DirectConv2dPlan(const Conv2dShape& shape, Context& context)
      : DirectPlan(shape, context, *kernelsFor(shape.kernel[1]).kernels, 1),
        scratch_(perThread(block_.outChannels * rowElements())) {
    if (padded_) inputs_ = perThread(shape.inChannels * inPlane());
  }

  std::string implementation() const override { return kernelsFor(shape_.kernel[1]).name; }
  bool fuse(Activation activation) override { return relu_ = activation == Activation::ReLU; }
  bool fusePool(const Pool2dShape& pool) override;

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override;
  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override;
  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override;

 private:
  /// A plane of y, which may be pooled.
  std::int64_t yPlane() const { return pool_ ? pool_->plane() : outPlane(); }
  std::int64_t outputElements() const { return block_.outChannels * yPlane(); }
  static std::size_t bytes(std::int64_t elements) {
    return static_cast<std::size_t>(elements) * sizeof(float);
  }

  /// The block's input with padding: the input itself, or a copy in thread `t`'s planes.
  const float* paddedInput(const Tensor& x, std::int64_t block, std::int64_t t);
  void forwardPooled(BlockShape block, int outputs, const float* x, const float* packed, const float* bias,
                     float* rows, std::int64_t at, float* y);
  void backwardBlock(const BlockShape& block, const float* gradY, float* gradRow, float* gradX);
  void backwardPooled(std::int64_t block, const float* gradY, float* gradRows, float* gradX);
  const float* unpooled(int outputs, const float* gradY, std::int64_t at, float* planes);

  /// A maximum pooling of the output whose windows share no rows.
  struct Pooling {
    const pool::MaxKernels<std::uint8_t>& kernels;
    pool::Plane whole;                  // a channel's plane
    pool::Plane rows;                   // the rows under one row of windows
    std::vector<std::uint8_t> winners;  // [block, channel, row, column, lane]

    std::int64_t row() const { return whole.outWidth * kLayoutBlock; }
    std::int64_t plane() const { return whole.outHeight * row(); }
  };

  bool relu_ = false;
  std::optional<Pooling> pool_;
  Tensor inputs_;   // [thread] planes with their padding; the padding stays zero
  Tensor scratch_;  // [thread] [channel][column][16]: one row of gradY, packed; more with pooling
};

bool DirectConv2dPlan::fusePool(const Pool2dShape& pool) {
  const std::array<std::int64_t, 2> none{0, 0};
  if (pool_ || pool.kind != PoolKind::Max || pool.input() != shape_.output() || pool.padding != none ||
      pool.kernel[0] > pool.stride[0] || pool.kernel[0] * pool.kernel[1] > 256)
    return false;
  const Shape out = pool.output();
  const pool::Plane whole{.height = block_.outHeight,
                          .width = block_.outWidth,
                          .outHeight = out[2],
                          .outWidth = out[3],
                          .lanes = kLayoutBlock,
                          .kernel = {pool.kernel[0], pool.kernel[1]},
                          .stride = {pool.stride[0], pool.stride[1]},
                          .padding = {0, 0}};
  pool::Plane rows = whole;
  rows.height = pool.kernel[0];
  rows.outHeight = 1;
  const std::int64_t elements = blocks_ * block_.outChannels * out[2] * out[3] * kLayoutBlock;
  pool_.emplace(Pooling{pool::kernels().maxOfFew, whole, rows,
                        std::vector<std::uint8_t>(static_cast<std::size_t>(elements))});
  scratch_ = perThread(
      std::max({kernels_.forwardGroup * rows.height * rowElements(),
                block_.outChannels * rows.height * rowElements(), kernels_.weightGroup * outPlane()}));
  return true;
}

const float* DirectConv2dPlan::paddedInput(const Tensor& x, std::int64_t block, std::int64_t t) {
  const float* from = x.data<float>() + block * shape_.inChannels * xPlane();
  if (!padded_) return from;
  float* planes = ofThread(inputs_, t);
  for (std::int64_t i = 0; i < shape_.inChannels; ++i)
    forEachRow([&](std::int64_t at, std::int64_t padded) {
      std::memcpy(planes + i * inPlane() + padded, from + i * xPlane() + at,
                  bytes(shape_.width * kLayoutBlock));
    });
  return planes;
}

/// Computes output channels; pools each row while it is in the L1 cache. @param at  offset in the winners.
void DirectConv2dPlan::forwardPooled(BlockShape block, int outputs, const float* x, const float* packed,
                                     const float* bias, float* rows, std::int64_t at, float* y) {
  block.outHeight = pool_->rows.height;
  const std::int64_t elements = block.outHeight * rowElements();
  for (std::int64_t row = 0; row < pool_->whole.outHeight; ++row) {
    const float* from = x + row * pool_->whole.stride[0] * block_.inWidth * kLayoutBlock;
    kernels_.forward(block, outputs, from, packed, bias, rows);
    if (relu_) dispatch<reluLoop>(rows, outputs * elements);
    for (int c = 0; c < outputs; ++c) {
      const std::int64_t to = c * pool_->plane() + row * pool_->row();
      pool_->kernels.forward(pool_->rows, rows + c * elements, y + to, pool_->winners.data() + at + to);
    }
  }
}

void DirectConv2dPlan::forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) {
  packForward(weight, only);
  const std::int64_t weightsPerOutput = shape_.inChannels * taps();
  const float* b = bias.defined() ? bias.data<float>() : nullptr;
  parallelParts(context_, blocks_, [&](std::int64_t t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const BlockShape block = blockAt(n);
      const float* in = paddedInput(x, n, t);
      float* out = y.data<float>() + n * outputElements();
      for (std::int64_t o = 0; o < shape_.outChannels;) {
        const std::int64_t group = std::min(kernels_.forwardGroup, shape_.outChannels - o);
        const float* packed = packed_.data<float>() + o * weightsPerOutput;
        const float* groupBias = b ? b + o : nullptr;
        float* to = out + o * yPlane();
        if (pool_) {
          forwardPooled(block, static_cast<int>(group), in, packed, groupBias, ofThread(scratch_, t),
                        n * outputElements() + o * yPlane(), to);
        } else {
          kernels_.forward(block, static_cast<int>(group), in, packed, groupBias, to);
          if (relu_) dispatch<reluLoop>(to, group * outPlane());
        }
        o += group;
      }
    }
  });
  zeroPadding(y);  // lanes without a sample hold the bias, or what was there
}

void DirectConv2dPlan::backwardBlock(const BlockShape& block, const float* gradY, float* gradRow,
                                     float* gradX) {
  for (std::int64_t row = 0; row < block_.outHeight; ++row) {
    // Planes are often a multiple of 4096 bytes apart and share few cache sets, so copy the row into a pack.
    for (std::int64_t o = 0; o < block_.outChannels; ++o)
      std::memcpy(gradRow + o * rowElements(), gradY + o * outPlane() + row * rowElements(),
                  bytes(rowElements()));
    backwardRow(block, row, gradRow, gradX);
  }
}

/// Skips rows outside all windows, which have no gradient.
void DirectConv2dPlan::backwardPooled(std::int64_t block, const float* gradY, float* gradRows, float* gradX) {
  const std::int64_t packedRow = block_.outChannels * rowElements();
  pool::Plane rows = pool_->rows;  // of one channel in the packed rows, which are packedRow apart
  rows.width = block_.outChannels * block_.outWidth;
  const std::uint8_t* winners = pool_->winners.data() + block * outputElements();
  for (std::int64_t row = 0; row < pool_->whole.outHeight; ++row) {
    std::memset(gradRows, 0, bytes(rows.height * packedRow));
    for (std::int64_t o = 0; o < block_.outChannels; ++o) {
      const std::int64_t from = o * pool_->plane() + row * pool_->row();
      pool_->kernels.backward(rows, gradY + from, winners + from, gradRows + o * rowElements());
    }
    for (std::int64_t r = 0; r < rows.height; ++r)
      backwardRow(blockAt(block), row * pool_->whole.stride[0] + r, gradRows + r * packedRow, gradX);
  }
}

void DirectConv2dPlan::backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) {
  packBackward(weight, only);
  parallelParts(context_, blocks_, [&](std::int64_t t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const float* from = gradY.data<float>() + n * outputElements();
      float* to = gradX.data<float>() + n * shape_.inChannels * xPlane();
      float* planes = padded_ ? ofThread(inputs_, t) : to;
      const std::size_t planeBytes = bytes(shape_.inChannels * inPlane());
      std::memset(planes, 0, planeBytes);
      pool_ ? backwardPooled(n, from, ofThread(scratch_, t), planes)
            : backwardBlock(blockAt(n), from, ofThread(scratch_, t), planes);
      if (!padded_) continue;
      for (std::int64_t i = 0; i < shape_.inChannels; ++i)
        forEachRow([&](std::int64_t at, std::int64_t padded) {
          std::memcpy(to + i * xPlane() + at, planes + i * inPlane() + padded,
                      bytes(shape_.width * kLayoutBlock));
        });
      std::memset(planes, 0, planeBytes);  // the padding of inputs must be zero
    }
  });
}

/// The gradient of a group of channels with respect to the pooling's input. @param at  offset in the winners.
const float* DirectConv2dPlan::unpooled(int outputs, const float* gradY, std::int64_t at, float* planes) {
  std::memset(planes, 0, bytes(outputs * outPlane()));
  for (int c = 0; c < outputs; ++c)
    pool_->kernels.backward(pool_->whole, gradY + c * pool_->plane(),
                            pool_->winners.data() + at + c * pool_->plane(), planes + c * outPlane());
  return planes;
}

void DirectConv2dPlan::backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight,
                                       Tensor& gradBias) {
  const std::int64_t height = shape_.kernel[0], width = shape_.kernel[1],
                     perOutput = shape_.inChannels * height * width;
  const std::int64_t groups = (shape_.outChannels + kernels_.weightGroup - 1) / kernels_.weightGroup;
  // Threads split output channels, not samples: one thread forms each sum, so its order is always the same.
  parallelParts(context_, groups, [&](std::int64_t t, std::int64_t first, std::int64_t last) {
    const std::int64_t begin = first * kernels_.weightGroup;
    const std::int64_t end = std::min(last * kernels_.weightGroup, shape_.outChannels);
    if (begin >= end) return;
    float* gw = gradWeight.data<float>();
    std::fill(gw + begin * perOutput, gw + end * perOutput, 0.0f);
    if (gradBias.defined()) std::fill(gradBias.data<float>() + begin, gradBias.data<float>() + end, 0.0f);
    for (std::int64_t n = 0; n < blocks_; ++n) {
      const BlockShape block = blockAt(n);
      const float* in = paddedInput(x, n, t);
      const float* grad = gradY.data<float>() + n * outputElements();
      for (std::int64_t o = begin; o < end; o += kernels_.weightGroup) {
        const auto outputs = static_cast<int>(std::min(kernels_.weightGroup, end - o));
        const float* planes = grad + o * yPlane();
        if (pool_)
          planes = unpooled(outputs, planes, n * outputElements() + o * yPlane(), ofThread(scratch_, t));
        for (std::int64_t i = 0; i < shape_.inChannels; ++i)
          for (std::int64_t ky = 0; ky < height; ++ky)
            kernels_.backwardWeights(block, outputs, in + i * inPlane() + ky * block_.inWidth * kLayoutBlock,
                                     planes, gw + o * perOutput + (i * height + ky) * width, perOutput);
        if (!gradBias.defined()) continue;
        for (int c = 0; c < outputs; ++c)
          gradBias.data<float>()[o + c] += kernels_.planeSum(block, planes + c * outPlane());
      }
    }
  });
}

}  // namespace

bool directConv2dSupports(const Conv2dShape& shape, const Context& context) {
  const std::int64_t width = shape.kernel[1];
  const bool there = context.mathMode() == MathMode::BFloat16 ? bfloat16DirectConv2dSupports(width)
                                                              : kernelsFor(width).kernels != nullptr;
  return there && shape.groups == 1 && shape.stride == std::array<std::int64_t, 2>{1, 1} &&
         shape.dilation == std::array<std::int64_t, 2>{1, 1};
}

std::unique_ptr<Conv2dPlan> planDirectConv2d(const Conv2dShape& shape, Context& context) {
  shape.validate();
  require(directConv2dSupports(shape, context),
          "conv2d: the direct implementation needs one group, stride and dilation 1, a kernel 1, 3, 5 or 7 "
          "wide and AVX2");
  if (context.mathMode() == MathMode::BFloat16) return planBFloat16DirectConv2d(shape, context);
  return std::make_unique<DirectConv2dPlan>(shape, context);
}

}  // namespace muster::cpu
