#include "muster/core/backend/cpu/bfloat16_direct_conv2d.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "muster/core/backend/cpu/direct_conv2d.h"
#include "muster/core/backend/cpu/direct_conv2d_kernels.h"
#include "muster/core/backend/cpu/padding.h"
#include "muster/core/backend/cpu/parallel.h"
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

/// Two weights in bf16 as one element, the first in the lower half.
float pairOf(float first, float second) {
  const auto upper = [](float value) { return std::bit_cast<std::uint32_t>(coding::bf16(value)) >> 16; };
  return std::bit_cast<float>(upper(first) | upper(second) << 16);
}

// Note [Direct convolution in bf16]
// An instruction adds the products of two pairs of bf16 to each float32 lane. So the kernels of
// direct_conv2d_tiles.h run as they are, on elements that are pairs: of two adjacent channels that the pass
// adds over (the input's in the forward pass, the output's in the gradient of the input), or of one sample of
// each of two blocks of samples in the gradient of the weights. A last channel or block without a partner is
// paired with zeros.

class BFloat16DirectConv2dPlan final : public Conv2dPlan {
 public:
  BFloat16DirectConv2dPlan(const Conv2dShape& shape, Context& context)
      : shape_(shape),
        context_(context),
        kernels_(*kernelsFor(shape.kernel[1])),
        blocks_((shape.batch + kLayoutBlock - 1) / kLayoutBlock),
        inPairs_((shape.inChannels + 1) / 2),
        outPairs_((shape.outChannels + 1) / 2),
        padded_(shape.padding[0] > 0 || shape.padding[1] > 0) {
    block_ = direct::blockShapeOf(shape);
    const std::int64_t taps = shape.kernel[0] * shape.kernel[1];
    packed_ = Tensor::empty({std::max(inPairs_ * shape.outChannels, outPairs_ * shape.inChannels) * taps});
    const auto perThread = [&](std::int64_t elements) {
      return Tensor::zeros({context.threads(), elements});
    };
    inputs_ = perThread(shape.inChannels * inPlane());
    if (padded_) gradInputs_ = perThread(shape.inChannels * inPlane());
    gradOutputs_ = perThread(std::max(outPairs_ * rowElements(), kernels_.weightGroup * outPlane()));
  }

  Layout inputLayout() const override { return Layout::SampleBlocks; }
  Layout outputLayout() const override { return Layout::SampleBlocks; }
  std::string implementation() const override { return "direct, AVX-512 BF16"; }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override;
  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override;
  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override;

 private:
  std::int64_t rowElements() const { return block_.outWidth * kLayoutBlock; }
  std::int64_t outPlane() const { return block_.outHeight * rowElements(); }
  std::int64_t inPlane() const { return block_.inHeight * block_.inWidth * kLayoutBlock; }
  std::int64_t xPlane() const { return shape_.height * shape_.width * kLayoutBlock; }

  /// Splits [0, count) over the context's threads: f(thread, begin, end).
  template <typename F>
  void split(std::int64_t count, F f) {
    const std::int64_t threads = context_.threads();
    parallelFor(context_, threads, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t) f(t, count * t / threads, count * (t + 1) / threads);
    });
  }
  static float* ofThread(Tensor& scratch, std::int64_t thread) {
    return scratch.data<float>() + thread * scratch.shape()[1];
  }

  /// f(offset of a row in a plane of x, in a plane with padding), for the rows of a channel.
  template <typename F>
  void forEachRow(F f) const {
    for (std::int64_t h = 0; h < shape_.height; ++h)
      f(h * shape_.width * kLayoutBlock,
        ((h + shape_.padding[0]) * block_.inWidth + shape_.padding[1]) * kLayoutBlock);
  }
  /// Pairs of two planes of x; the padding stays zero. @param second  may be null.
  void packPlane(const float* first, const float* second, float* to) const {
    if (!padded_) return pack(first, second, to, xPlane());
    forEachRow([&](std::int64_t at, std::int64_t padded) {
      pack(first + at, second ? second + at : nullptr, to + padded, shape_.width * kLayoutBlock);
    });
  }
  void packForward(const Tensor& weight);
  void packBackward(const Tensor& weight);
  void backwardBlock(const float* gradY, float* gradRow, float* gradX);
  void addWeightGradients(const float* x, const float* const gradY[2], std::int64_t first,
                          std::int64_t outputs, std::int64_t thread, float* gradWeight);

  Conv2dShape shape_;
  Context& context_;
  const Kernels& kernels_;
  BlockShape block_{};
  std::int64_t blocks_, inPairs_, outPairs_;
  bool padded_;
  Tensor packed_;       // the weights in the running kernel's format
  Tensor inputs_;       // [thread] planes of pairs with their padding, which stays zero
  Tensor gradInputs_;   // [thread] planes with their padding
  Tensor gradOutputs_;  // [thread] a row of pairs of gradY's channels, or planes of a group of channels
};

/// [out][in][ky][kx] to [group of out][pair of in][ky][kx][out in the group].
void BFloat16DirectConv2dPlan::packForward(const Tensor& weight) {
  const float* w = weight.data<float>();
  float* to = packed_.data<float>();
  const std::int64_t taps = shape_.kernel[0] * shape_.kernel[1];
  for (std::int64_t o = 0; o < shape_.outChannels; o += kernels_.forwardGroup) {
    const std::int64_t group = std::min(kernels_.forwardGroup, shape_.outChannels - o);
    for (std::int64_t i = 0; i < shape_.inChannels; i += 2)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        for (std::int64_t c = 0; c < group; ++c) {
          const float* first = w + ((o + c) * shape_.inChannels + i) * taps + tap;
          *to++ = pairOf(*first, i + 1 < shape_.inChannels ? first[taps] : 0.0f);
        }
  }
}

/// [out][in][ky][kx] to [group of in][ky][pair of out][in in the group][kx].
void BFloat16DirectConv2dPlan::packBackward(const Tensor& weight) {
  const float* w = weight.data<float>();
  float* to = packed_.data<float>();
  const std::int64_t height = shape_.kernel[0], width = shape_.kernel[1];
  const std::int64_t perOutput = shape_.inChannels * height * width;
  for (std::int64_t i = 0; i < shape_.inChannels; i += kernels_.backwardGroup) {
    const std::int64_t group = std::min(kernels_.backwardGroup, shape_.inChannels - i);
    for (std::int64_t ky = 0; ky < height; ++ky)
      for (std::int64_t o = 0; o < shape_.outChannels; o += 2)
        for (std::int64_t c = 0; c < group; ++c)
          for (std::int64_t kx = 0; kx < width; ++kx) {
            const float* first = w + o * perOutput + ((i + c) * height + ky) * width + kx;
            *to++ = pairOf(*first, o + 1 < shape_.outChannels ? first[perOutput] : 0.0f);
          }
  }
}

void BFloat16DirectConv2dPlan::forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) {
  packForward(weight);
  BlockShape pairs = block_;
  pairs.inChannels = inPairs_;
  const std::int64_t weightsPerOutput = inPairs_ * shape_.kernel[0] * shape_.kernel[1];
  const float* b = bias.defined() ? bias.data<float>() : nullptr;
  split(blocks_, [&](std::int64_t t, std::int64_t begin, std::int64_t end) {
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
  BlockShape pairs = block_;
  pairs.outChannels = outPairs_;
  const std::int64_t weightsPerInput = block_.kernelHeight * outPairs_ * shape_.kernel[1];
  for (std::int64_t row = 0; row < block_.outHeight; ++row) {
    for (std::int64_t o = 0; o < shape_.outChannels; o += 2) {
      const float* first = gradY + o * outPlane() + row * rowElements();
      pack(first, o + 1 < shape_.outChannels ? first + outPlane() : nullptr, gradRow + o / 2 * rowElements(),
           rowElements());
    }
    for (std::int64_t i = 0; i < shape_.inChannels; i += kernels_.backwardGroup) {
      const std::int64_t group = std::min(kernels_.backwardGroup, shape_.inChannels - i);
      kernels_.backwardData(pairs, static_cast<int>(group), row, gradRow,
                            packed_.data<float>() + i * weightsPerInput, gradX + i * inPlane());
    }
  }
}

void BFloat16DirectConv2dPlan::backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) {
  packBackward(weight);
  const auto bytes = [](std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); };
  split(blocks_, [&](std::int64_t t, std::int64_t begin, std::int64_t end) {
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

/// Adds the gradients of `outputs` channels from `first` on over two blocks, the second of which may be null.
/// Of x, thread `thread` has the pairs.
void BFloat16DirectConv2dPlan::addWeightGradients(const float* x, const float* const gradY[2],
                                                  std::int64_t first, std::int64_t outputs,
                                                  std::int64_t thread, float* gradWeight) {
  const std::int64_t height = shape_.kernel[0], width = shape_.kernel[1],
                     taps = shape_.inChannels * height * width;
  float* grad = ofThread(gradOutputs_, thread);
  const std::int64_t at = first * outPlane();
  pack(gradY[0] + at, gradY[1] ? gradY[1] + at : nullptr, grad, outputs * outPlane());
  for (std::int64_t i = 0; i < shape_.inChannels; ++i)
    for (std::int64_t ky = 0; ky < height; ++ky)
      kernels_.backwardWeights(block_, static_cast<int>(outputs),
                               x + i * inPlane() + ky * block_.inWidth * kLayoutBlock, grad,
                               gradWeight + first * taps + (i * height + ky) * width, taps);
}

void BFloat16DirectConv2dPlan::backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight,
                                               Tensor& gradBias) {
  const std::int64_t taps = shape_.weight().elements() / shape_.outChannels;
  const std::int64_t groups = (shape_.outChannels + kernels_.weightGroup - 1) / kernels_.weightGroup;
  // Threads take output channels, not samples: each sum has one owner, so its order never depends on threads.
  split(groups, [&](std::int64_t t, std::int64_t firstGroup, std::int64_t lastGroup) {
    const std::int64_t begin = firstGroup * kernels_.weightGroup;
    const std::int64_t end = std::min(lastGroup * kernels_.weightGroup, shape_.outChannels);
    if (begin >= end) return;
    float* gw = gradWeight.data<float>();
    std::fill(gw + begin * taps, gw + end * taps, 0.0f);
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
