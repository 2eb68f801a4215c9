#include "muster/core/backend/cpu/conv/bfloat16_direct_conv2d.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "muster/core/backend/cpu/conv/direct_conv2d_plan.h"
#include "muster/core/backend/cpu/padding.h"
#include "muster/core/ops/delta_coding_rules.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

using direct::BlockShape;
using direct::Kernels;

const Kernels* kernelsFor(std::int64_t kernelWidth) {
#if defined(__x86_64__)
  return direct::bfloat16Kernels(kernelWidth);
#else
  static_cast<void>(kernelWidth);
  return nullptr;
#endif
}

void pack([[maybe_unused]] const float* first, [[maybe_unused]] const float* second,
          [[maybe_unused]] float* to, [[maybe_unused]] std::int64_t elements) {
#if defined(__x86_64__)
  direct::packBFloat16(first, second, to, elements);
#endif
}

/// The weights of two channels in bf16 as one element, the first in the lower half.
/// @param next  distance to the second weight.  @param channels  channels left; if 1, the second weight is 0.
constexpr auto pairOf = [](const float* first, std::int64_t next, std::int64_t channels) {
  const auto upper = [](float value) { return std::bit_cast<std::uint32_t>(coding::bf16(value)) >> 16; };
  return std::bit_cast<float>(upper(*first) | upper(channels > 1 ? first[next] : 0.0f) << 16);
};

// Note [Direct convolution in bf16]
// One instruction adds both products of two bf16 pairs to each float32 lane. So the kernels of
// direct_conv2d_tiles.h run unchanged on elements that are pairs. In the forward pass a pair holds two
// adjacent input channels; in the gradient of the input, two adjacent output channels; in the gradient of the
// weights, one sample of each of two blocks. A last channel or block without a partner is paired with zeros.

class BFloat16DirectConv2dPlan final : public direct::DirectPlan {
 public:
  BFloat16DirectConv2dPlan(const Conv2dShape& shape, Context& context)
      : DirectPlan(shape, context, *kernelsFor(shape.kernel[1]), 2),
        inputs_(perThread(shape.inChannels * inPlane())),
        gradOutputs_(perThread(std::max(outElements_ * rowElements(), kernels_.weightGroup * outPlane()))) {
    if (padded_) gradInputs_ = perThread(shape.inChannels * inPlane());
  }

  std::string implementation() const override { return "direct, AVX-512 BF16"; }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override;
  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override;
  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override;

 private:
  /// Packs two planes of x into pairs; the padding stays zero. @param second  may be null.
  void packPlane(const float* first, const float* second, float* to) const {
    if (!padded_) return pack(first, second, to, xPlane());
    forEachRow([&](std::int64_t at, std::int64_t padded) {
      pack(first + at, second ? second + at : nullptr, to + padded, shape_.width * kLayoutBlock);
    });
  }
  void backwardBlock(const float* gradY, float* gradRow, float* gradX);
  void addWeightGradients(const float* x, const float* const gradY[2], std::int64_t first,
                          std::int64_t outputs, std::int64_t thread, float* gradWeight);

  Tensor inputs_;       // [thread] planes of pairs with their padding, which stays zero
  Tensor gradInputs_;   // [thread] planes with their padding
  Tensor gradOutputs_;  // [thread] a row of pairs of gradY's channels, or planes of a group of channels
};

void BFloat16DirectConv2dPlan::forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) {
  packForward(weight, pairOf);
  BlockShape pairs = block_;
  pairs.inChannels = inElements_;
  const std::int64_t weightsPerOutput = inElements_ * taps();
  const float* b = bias.defined() ? bias.data<float>() : nullptr;
  parallelParts(context_, blocks_, [&](std::int64_t t, std::int64_t begin, std::int64_t end) {
    float* in = ofThread(inputs_, t);
    for (std::int64_t n = begin; n < end; ++n) {
      const float* from = x.data<float>() + n * shape_.inChannels * xPlane();
      for (std::int64_t i = 0; i < shape_.inChannels; i += 2)
        packPlane(from + i * xPlane(), i + 1 < shape_.inChannels ? from + (i + 1) * xPlane() : nullptr,
                  in + i / 2 * inPlane());
      float* out = y.data<float>() + n * shape_.outChannels * outPlane();
      for (std::int64_t o = 0; o < shape_.outChannels; o += kernels_.forwardGroup) {
        const std::int64_t group = std::min(kernels_.forwardGroup, shape_.outChannels - o);
        kernels_.forward(pairs, static_cast<int>(group), in, packed_.data<float>() + o * weightsPerOutput,
                         b ? b + o : nullptr, out + o * outPlane());
      }
    }
  });
  zeroPadding(y);  // lanes without a sample hold the bias
}

void BFloat16DirectConv2dPlan::backwardBlock(const float* gradY, float* gradRow, float* gradX) {
  for (std::int64_t row = 0; row < block_.outHeight; ++row) {
    for (std::int64_t o = 0; o < shape_.outChannels; o += 2) {
      const float* first = gradY + o * outPlane() + row * rowElements();
      pack(first, o + 1 < shape_.outChannels ? first + outPlane() : nullptr, gradRow + o / 2 * rowElements(),
           rowElements());
    }
    backwardRow(block_, row, gradRow, gradX);
  }
}

void BFloat16DirectConv2dPlan::backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) {
  packBackward(weight, pairOf);
  const auto bytes = [](std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); };
  parallelParts(context_, blocks_, [&](std::int64_t t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      float* to = gradX.data<float>() + n * shape_.inChannels * xPlane();
      float* planes = padded_ ? ofThread(gradInputs_, t) : to;
      std::memset(planes, 0, bytes(shape_.inChannels * inPlane()));
      backwardBlock(gradY.data<float>() + n * shape_.outChannels * outPlane(), ofThread(gradOutputs_, t),
                    planes);
      if (!padded_) continue;
      for (std::int64_t i = 0; i < shape_.inChannels; ++i)
        forEachRow([&](std::int64_t at, std::int64_t padded) {
          std::memcpy(to + i * xPlane() + at, planes + i * inPlane() + padded,
                      bytes(shape_.width * kLayoutBlock));
        });
    }
  });
}

/// Adds the weight gradients of `outputs` channels from `first` on over two blocks; the second may be null.
/// @param x  the thread's pairs of inputs.
void BFloat16DirectConv2dPlan::addWeightGradients(const float* x, const float* const gradY[2],
                                                  std::int64_t first, std::int64_t outputs,
                                                  std::int64_t thread, float* gradWeight) {
  const std::int64_t height = shape_.kernel[0], width = shape_.kernel[1],
                     perOutput = shape_.inChannels * height * width;
  float* grad = ofThread(gradOutputs_, thread);
  const std::int64_t at = first * outPlane();
  pack(gradY[0] + at, gradY[1] ? gradY[1] + at : nullptr, grad, outputs * outPlane());
  for (std::int64_t i = 0; i < shape_.inChannels; ++i)
    for (std::int64_t ky = 0; ky < height; ++ky)
      kernels_.backwardWeights(block_, static_cast<int>(outputs),
                               x + i * inPlane() + ky * block_.inWidth * kLayoutBlock, grad,
                               gradWeight + first * perOutput + (i * height + ky) * width, perOutput);
}

void BFloat16DirectConv2dPlan::backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight,
                                               Tensor& gradBias) {
  const std::int64_t perOutput = shape_.weight().elements() / shape_.outChannels;
  const std::int64_t groups = (shape_.outChannels + kernels_.weightGroup - 1) / kernels_.weightGroup;
  // Threads split output channels, not samples: one thread forms each sum, so its order is always the same.
  parallelParts(context_, groups, [&](std::int64_t t, std::int64_t firstGroup, std::int64_t lastGroup) {
    const std::int64_t begin = firstGroup * kernels_.weightGroup;
    const std::int64_t end = std::min(lastGroup * kernels_.weightGroup, shape_.outChannels);
    if (begin >= end) return;
    float* gw = gradWeight.data<float>();
    std::fill(gw + begin * perOutput, gw + end * perOutput, 0.0f);
    float* gb = gradBias.defined() ? gradBias.data<float>() : nullptr;
    if (gb) std::fill(gb + begin, gb + end, 0.0f);
    float* in = ofThread(inputs_, t);
    for (std::int64_t n = 0; n < blocks_; n += 2) {
      const auto block = [&](const Tensor& tensor, std::int64_t m) -> const float* {
        return m < blocks_ ? tensor.data<float>() + m * (tensor.elements() / shape_.batch) * kLayoutBlock
                           : nullptr;
      };
      const float* const xs[2] = {block(x, n), block(x, n + 1)};
      const float* const grads[2] = {block(gradY, n), block(gradY, n + 1)};
      for (std::int64_t i = 0; i < shape_.inChannels; ++i)
        packPlane(xs[0] + i * xPlane(), xs[1] ? xs[1] + i * xPlane() : nullptr, in + i * inPlane());
      for (std::int64_t o = begin; o < end; o += kernels_.weightGroup)
        addWeightGradients(in, grads, o, std::min(kernels_.weightGroup, end - o), t, gw);
      if (!gb) continue;
      for (const float* grad : grads)
        for (std::int64_t o = begin; grad && o < end; ++o)
          gb[o] += kernels_.planeSum(block_, grad + o * outPlane());
    }
  });
}

}  // namespace

bool bfloat16DirectConv2dSupports(std::int64_t kernelWidth) {
  return kernelsFor(kernelWidth) != nullptr;
}

std::unique_ptr<Conv2dPlan> planBFloat16DirectConv2d(const Conv2dShape& shape, Context& context) {
  return std::make_unique<BFloat16DirectConv2dPlan>(shape, context);
}

}  // namespace muster::cpu
