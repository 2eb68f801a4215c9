#include "muster/core/backend/cpu/direct_conv2d.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "muster/core/backend/cpu/bfloat16_direct_conv2d.h"
#include "muster/core/backend/cpu/direct_conv2d_kernels.h"
#include "muster/core/backend/cpu/padding.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/base/error.h"

namespace muster::cpu {
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

class DirectConv2dPlan final : public Conv2dPlan {
 public:
  DirectConv2dPlan(const Conv2dShape& shape, Context& context)
      : shape_(shape),
        context_(context),
        choice_(kernelsFor(shape.kernel[1])),
        kernels_(*choice_.kernels),
        blocks_((shape.batch + kLayoutBlock - 1) / kLayoutBlock),
        padded_(shape.padding[0] > 0 || shape.padding[1] > 0) {
    const Shape out = shape.output();
    block_ = {.inChannels = shape.inChannels,
              .inHeight = shape.height + 2 * shape.padding[0],
              .inWidth = shape.width + 2 * shape.padding[1],
              .outChannels = shape.outChannels,
              .outHeight = out[2],
              .outWidth = out[3],
              .kernelHeight = shape.kernel[0]};
    packed_ = Tensor::empty({shape.weight().elements()});
    const auto perThread = [&](std::int64_t elements) {
      return Tensor::zeros({context.threads(), elements});
    };
    if (padded_) inputs_ = perThread(paddedElements());
    gradRows_ = perThread(block_.outChannels * block_.outWidth * kLayoutBlock);
  }

  Layout inputLayout() const override { return Layout::SampleBlocks; }
  Layout outputLayout() const override { return Layout::SampleBlocks; }
  std::string implementation() const override { return choice_.name; }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override;
  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override;
  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override;

 private:
  std::int64_t paddedElements() const {
    return block_.inChannels * block_.inHeight * block_.inWidth * kLayoutBlock;
  }
  std::int64_t inputElements() const {
    return shape_.inChannels * shape_.height * shape_.width * kLayoutBlock;
  }
  std::int64_t outputElements() const { return block_.outChannels * outPlane(); }
  std::int64_t outPlane() const { return block_.outHeight * block_.outWidth * kLayoutBlock; }
  std::int64_t inPlane() const { return block_.inHeight * block_.inWidth * kLayoutBlock; }

  /// Splits [0, count) over the context's threads: f(thread, begin, end).
  template <typename F>
  void split(std::int64_t count, F f) {
    const std::int64_t threads = context_.threads();
    parallelFor(context_, threads, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t) f(t, count * t / threads, count * (t + 1) / threads);
    });
  }

  /// Calls f(first element of a row in the input, in the padded planes) for the rows of all input channels.
  template <typename F>
  void forEachInputRow(F f) const {
    for (std::int64_t c = 0; c < shape_.inChannels; ++c)
      for (std::int64_t h = 0; h < shape_.height; ++h)
        f((c * shape_.height + h) * shape_.width * kLayoutBlock,
          c * inPlane() + ((h + shape_.padding[0]) * block_.inWidth + shape_.padding[1]) * kLayoutBlock);
  }
  std::size_t inputRowBytes() const {
    return static_cast<std::size_t>(shape_.width * kLayoutBlock) * sizeof(float);
  }

  /// The block's input with padding: the input itself, or a copy in thread `t`'s planes.
  const float* paddedInput(const Tensor& x, std::int64_t block, std::int64_t t);
  void packForward(const Tensor& weight);
  void packBackward(const Tensor& weight);
  void backwardBlock(const float* gradY, float* gradRow, float* gradX);

  Conv2dShape shape_;
  Context& context_;
  const Choice choice_;
  const Kernels& kernels_;
  BlockShape block_{};
  std::int64_t blocks_;
  bool padded_;
  Tensor packed_;    // the weights in the running kernel's format
  Tensor inputs_;    // [thread] planes with their padding; the padding stays zero
  Tensor gradRows_;  // [thread][channel][column][16]: one row of gradY, packed
};

const float* DirectConv2dPlan::paddedInput(const Tensor& x, std::int64_t block, std::int64_t t) {
  const float* from = x.data<float>() + block * inputElements();
  if (!padded_) return from;
  float* planes = inputs_.data<float>() + t * paddedElements();
  forEachInputRow([&](std::int64_t at, std::int64_t padded) {
    std::memcpy(planes + padded, from + at, inputRowBytes());
  });
  return planes;
}

/// [out][in][ky][kx] to [group of out][in][ky][kx][out in the group].
void DirectConv2dPlan::packForward(const Tensor& weight) {
  const float* w = weight.data<float>();
  float* to = packed_.data<float>();
  const std::int64_t taps = shape_.inChannels * shape_.kernel[0] * shape_.kernel[1];
  for (std::int64_t o = 0; o < shape_.outChannels;) {
    const std::int64_t group = std::min(kernels_.forwardGroup, shape_.outChannels - o);
    for (std::int64_t tap = 0; tap < taps; ++tap)
      for (std::int64_t c = 0; c < group; ++c) *to++ = w[(o + c) * taps + tap];
    o += group;
  }
}

/// [out][in][ky][kx] to [group of in][ky][out][in in the group][kx].
void DirectConv2dPlan::packBackward(const Tensor& weight) {
  const float* w = weight.data<float>();
  float* to = packed_.data<float>();
  const std::int64_t height = shape_.kernel[0], width = shape_.kernel[1];
  for (std::int64_t i = 0; i < shape_.inChannels;) {
    const std::int64_t group = std::min(kernels_.backwardGroup, shape_.inChannels - i);
    for (std::int64_t ky = 0; ky < height; ++ky)
      for (std::int64_t o = 0; o < shape_.outChannels; ++o)
        for (std::int64_t c = 0; c < group; ++c, to += width)
          std::copy_n(w + ((o * shape_.inChannels + i + c) * height + ky) * width, width, to);
    i += group;
  }
}

void DirectConv2dPlan::forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) {
  packForward(weight);
  const std::int64_t taps = shape_.inChannels * shape_.kernel[0] * shape_.kernel[1];
  const float* b = bias.defined() ? bias.data<float>() : nullptr;
  split(blocks_, [&](std::int64_t t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const float* in = paddedInput(x, n, t);
      float* out = y.data<float>() + n * outputElements();
      for (std::int64_t o = 0; o < shape_.outChannels;) {
        const std::int64_t group = std::min(kernels_.forwardGroup, shape_.outChannels - o);
        kernels_.forward(block_, static_cast<int>(group), in, packed_.data<float>() + o * taps,
                         b ? b + o : nullptr, out + o * outPlane());
        o += group;
      }
    }
  });
  zeroPadding(y);  // lanes without a sample hold the bias
}

void DirectConv2dPlan::backwardBlock(const float* gradY, float* gradRow, float* gradX) {
  const std::int64_t rowElements = block_.outWidth * kLayoutBlock;
  const std::int64_t weightsPerInput = block_.kernelHeight * block_.outChannels * shape_.kernel[1];
  for (std::int64_t row = 0; row < block_.outHeight; ++row) {
    // Planes are often a multiple of 4096 bytes apart and share few cache sets; a packed row does not.
    for (std::int64_t o = 0; o < block_.outChannels; ++o)
      std::memcpy(gradRow + o * rowElements, gradY + o * outPlane() + row * rowElements,
                  static_cast<std::size_t>(rowElements) * sizeof(float));
    for (std::int64_t i = 0; i < shape_.inChannels;) {
      const std::int64_t group = std::min(kernels_.backwardGroup, shape_.inChannels - i);
      kernels_.backwardData(block_, static_cast<int>(group), row, gradRow,
                            packed_.data<float>() + i * weightsPerInput, gradX + i * inPlane());
      i += group;
    }
  }
}

void DirectConv2dPlan::backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) {
  packBackward(weight);
  split(blocks_, [&](std::int64_t t, std::int64_t begin, std::int64_t end) {
    float* gradRow = gradRows_.data<float>() + t * block_.outChannels * block_.outWidth * kLayoutBlock;
    for (std::int64_t n = begin; n < end; ++n) {
      const float* from = gradY.data<float>() + n * outputElements();
      float* to = gradX.data<float>() + n * inputElements();
      float* planes = padded_ ? inputs_.data<float>() + t * paddedElements() : to;
      std::memset(planes, 0, static_cast<std::size_t>(paddedElements()) * sizeof(float));
      backwardBlock(from, gradRow, planes);
      if (!padded_) continue;
      forEachInputRow([&](std::int64_t at, std::int64_t padded) {
        std::memcpy(to + at, planes + padded, inputRowBytes());
      });
      std::memset(planes, 0,
                  static_cast<std::size_t>(paddedElements()) *
                      sizeof(float));  // zeroes the padding that other plans overwrote
    }
  });
}

void DirectConv2dPlan::backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight,
                                       Tensor& gradBias) {
  const std::int64_t height = shape_.kernel[0], width = shape_.kernel[1],
                     taps = shape_.inChannels * height * width;
  const std::int64_t groups = (shape_.outChannels + kernels_.weightGroup - 1) / kernels_.weightGroup;
  // Threads take output channels, not samples: each sum has one owner, so its order never depends on threads.
  split(groups, [&](std::int64_t t, std::int64_t first, std::int64_t last) {
    const std::int64_t begin = first * kernels_.weightGroup;
    const std::int64_t end = std::min(last * kernels_.weightGroup, shape_.outChannels);
    if (begin >= end) return;
    float* gw = gradWeight.data<float>();
    std::fill(gw + begin * taps, gw + end * taps, 0.0f);
    if (gradBias.defined()) std::fill(gradBias.data<float>() + begin, gradBias.data<float>() + end, 0.0f);
    for (std::int64_t n = 0; n < blocks_; ++n) {
      const float* in = paddedInput(x, n, t);
      const float* grad = gradY.data<float>() + n * outputElements();
      for (std::int64_t o = begin; o < end; o += kernels_.weightGroup) {
        const auto outputs = static_cast<int>(std::min(kernels_.weightGroup, end - o));
        for (std::int64_t i = 0; i < shape_.inChannels; ++i)
          for (std::int64_t ky = 0; ky < height; ++ky)
            kernels_.backwardWeights(block_, outputs, in + i * inPlane() + ky * block_.inWidth * kLayoutBlock,
                                     grad + o * outPlane(), gw + o * taps + (i * height + ky) * width, taps);
        if (!gradBias.defined()) continue;
        for (int c = 0; c < outputs; ++c)
          gradBias.data<float>()[o + c] += kernels_.planeSum(block_, grad + (o + c) * outPlane());
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
