#include "muster/core/backend/cpu/conv/pixel_conv2d.h"

#include <algorithm>
#include <array>
#include <vector>

#include "muster/core/backend/cpu/conv/pixel_conv2d_kernels.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/base/error.h"
#include "muster/core/device/math_mode.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {
namespace {

using namespace pixels;

constexpr std::int64_t kMostFloats = std::int64_t{1} << 17;  // of a sample's copies: half of the second cache
// Floats of several samples' copies, and of their gradients while they are packed: these fit the first
// cache.
constexpr std::int64_t kPartFloats = std::int64_t{1} << 16, kPackedFloats = std::int64_t{1} << 13;

/// Floats of one channel's copies, and what the kernel writes after them.
std::int64_t copiesOf(const Conv2dShape& shape) {
  return shape.kernel[1] * shape.height * shape.output()[3] + kVector;
}

}  // namespace

bool pixelConv2dSupports(const Conv2dShape& shape, const Context& context) {
#if defined(__x86_64__)
  const std::array<std::int64_t, 2> ones{1, 1}, none{0, 0};
  return instructionSet() == InstructionSet::Avx512 && context.mathMode() != MathMode::BFloat16 &&
         shape.groups == 1 && shape.stride == ones && shape.dilation == ones && shape.padding == none &&
         shape.inChannels * copiesOf(shape) <= kMostFloats;
#else
  static_cast<void>(shape), static_cast<void>(context);
  return false;
#endif
}

#if defined(__x86_64__)
namespace {

class PixelPlan final : public Conv2dPlan {
 public:
  PixelPlan(const Conv2dShape& shape, Context& context);

  Layout inputLayout() const override { return Layout::RowMajor; }
  Layout outputLayout() const override { return Layout::RowMajor; }
  std::string implementation() const override { return "pixels in vectors, AVX-512"; }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override;
  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override;
  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override;

 private:
  std::int64_t taps() const { return shape_.kernel[0] * shape_.kernel[1]; }  // of a channel
  std::int64_t inPixels() const { return shape_.height * shape_.width; }
  std::int64_t outSample() const { return shape_.outChannels * sizes_.pixels; }
  std::int64_t copiedSample() const { return shape_.inChannels * channel_; }
  /// Groups of output channels have nearly equal numbers of quads: a tile of one quad is slow.
  std::int64_t firstQuad(std::int64_t group) const { return quads_ * group / groups_; }
  /// Floats of the packed gradients of a sample, for the largest group of output channels.
  std::int64_t packedSample() const {
    return (quads_ + groups_ - 1) / groups_ * ((sizes_.pixels + 3) / 4) * kVector;
  }
  void expect(const char* name, const Tensor& tensor, const Shape& shape) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape, Layout::RowMajor});
  }
  /// Calls f(first sample, number of samples) for parts of the batch, when copies_ has those of the part.
  template <typename F>
  void forEachPart(const Tensor& x, F f);
  /// Packs gradY of a group of output channels and some samples. Also adds it to gradBias, if there is one;
  /// the first sample of the batch overwrites it.
  void packGroup(const Tensor& gradY, std::int64_t group, std::int64_t first, std::int64_t count,
                 float* packed, float* gradBias);

  const Conv2dShape shape_;
  Context& context_;
  const Image image_;
  const std::int64_t channel_;         // distance between two channels in copies_
  const std::int64_t samples_;         // in a part of the batch
  const std::int64_t quads_, groups_;  // of output channels, for the weights' gradient
  std::vector<std::int64_t> places_;   // [tap]
  Sizes sizes_;
  std::int64_t packedSamples_;  // packed together
  Tensor copies_;               // of x: [sample][channel][kernel column][row][column of the output]
  Tensor packed_;               // gradY of a group: [thread][sample][four pixels][quad][channel][pixel]
  Tensor gradX_;                // of one channel: [thread][kernel column][row][column of the output]
};

PixelPlan::PixelPlan(const Conv2dShape& shape, Context& context)
    : shape_(shape),
      context_(context),
      image_{.height = shape.height,
             .width = shape.width,
             .kernelWidth = shape.kernel[1],
             .outWidth = shape.output()[3]},
      channel_(copiesOf(shape)),
      samples_(std::clamp<std::int64_t>(kPartFloats / copiedSample(), 1, shape.batch)),
      quads_((shape.outChannels + 3) / 4),
      groups_((quads_ + kMostQuads - 1) / kMostQuads) {
  for (std::int64_t i = 0; i < shape.inChannels; ++i)
    for (std::int64_t ky = 0; ky < shape.kernel[0]; ++ky)
      for (std::int64_t kx = 0; kx < shape.kernel[1]; ++kx)
        places_.push_back(i * channel_ + (kx * shape.height + ky) * image_.outWidth);
  sizes_ = {.pixels = shape.output()[2] * image_.outWidth,
            .taps = shape.inChannels * taps(),
            .places = places_.data()};
  copies_ = Tensor::zeros({samples_, copiedSample()});
  packedSamples_ = std::clamp<std::int64_t>(kPackedFloats / packedSample(), 1, samples_);
  packed_ = Tensor::empty({context.threads(), packedSamples_ * packedSample()});
  gradX_ = Tensor::empty({context.threads(), channel_});
}

template <typename F>
void PixelPlan::forEachPart(const Tensor& x, F f) {
  for (std::int64_t first = 0; first < shape_.batch; first += samples_) {
    const std::int64_t count = std::min(samples_, shape_.batch - first);
    const float* from = x.data<float>() + first * shape_.inChannels * inPixels();
    parallelFor(context_, count * shape_.inChannels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        copyShiftedAvx512(image_, from + i * inPixels(), copies_.data<float>() + i * channel_);
    });
    f(first, count);
  }
}

void PixelPlan::forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) {
  expect("x", x, shape_.input());
  expect("weight", weight, shape_.weight());
  if (bias.defined()) expect("bias", bias, Shape{shape_.outChannels});
  expect("y", y, shape_.output());
  const float* b = bias.defined() ? bias.data<float>() : nullptr;
  const std::int64_t tiles = (shape_.outChannels + kOutputs - 1) / kOutputs;
  forEachPart(x, [&](std::int64_t first, std::int64_t count) {
    parallelFor(context_, count * tiles, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t tile = begin; tile < end; ++tile) {
        const std::int64_t n = tile / tiles, o = tile % tiles * kOutputs;
        forwardAvx512(sizes_, std::min(kOutputs, shape_.outChannels - o),
                      copies_.data<float>() + n * copiedSample(), weight.data<float>() + o * sizes_.taps,
                      b ? b + o : nullptr, y.data<float>() + (first + n) * outSample() + o * sizes_.pixels);
      }
    });
  });
}

void PixelPlan::backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) {
  expect("gradY", gradY, shape_.output());
  expect("weight", weight, shape_.weight());
  expect("gradX", gradX, shape_.input());
  const std::int64_t inputs = shape_.inChannels;
  parallelParts(context_, shape_.batch * inputs, [&](std::int64_t t, std::int64_t begin, std::int64_t end) {
    float* sums = gradX_.data<float>() + t * channel_;
    for (std::int64_t i = begin; i < end; ++i) {
      std::fill_n(sums, channel_, 0.0f);
      backwardDataAvx512(sizes_, shape_.outChannels, taps(), gradY.data<float>() + i / inputs * outSample(),
                         weight.data<float>() + i % inputs * taps(), sums);
      addShiftedAvx512(image_, sums, gradX.data<float>() + i * inPixels());
    }
  });
}

void PixelPlan::packGroup(const Tensor& gradY, std::int64_t group, std::int64_t first, std::int64_t count,
                          float* packed, float* gradBias) {
  const std::int64_t begin = firstQuad(group), quads = firstQuad(group + 1) - begin;
  for (std::int64_t n = first; n < first + count; ++n, packed += packedSample())
    for (std::int64_t quad = 0; quad < quads; ++quad) {
      const std::int64_t o = (begin + quad) * 4, outputs = std::min<std::int64_t>(4, shape_.outChannels - o);
      float sums[4];
      packGradYAvx512(sizes_, outputs, gradY.data<float>() + n * outSample() + o * sizes_.pixels,
                      quads * kVector, packed + quad * kVector, sums);
      if (!gradBias) continue;
      for (std::int64_t c = 0; c < outputs; ++c)
        gradBias[o + c] = n > 0 ? gradBias[o + c] + sums[c] : sums[c];
    }
}

void PixelPlan::backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) {
  expect("x", x, shape_.input());
  expect("gradY", gradY, shape_.output());
  expect("gradWeight", gradWeight, shape_.weight());
  if (gradBias.defined()) expect("gradBias", gradBias, Shape{shape_.outChannels});
  const std::int64_t inputs = shape_.inChannels;
  // Threads split channels, not samples: one thread forms each sum, so its order is always the same.
  forEachPart(x, [&](std::int64_t first, std::int64_t count) {
    parallelParts(context_, groups_ * inputs, [&](std::int64_t t, std::int64_t begin, std::int64_t end) {
      float* packed = packed_.data<float>() + t * packedSamples_ * packedSample();
      for (std::int64_t n = 0; n < count; n += packedSamples_) {
        const Samples samples{
            .count = std::min(packedSamples_, count - n), .x = copiedSample(), .packed = packedSample()};
        for (std::int64_t part = begin; part < end; ++part) {
          const std::int64_t group = part / inputs, i = part % inputs, o = firstQuad(group) * 4;
          if (part == begin || i == 0)
            packGroup(gradY, group, first + n, samples.count, packed,
                      i == 0 && gradBias.defined() ? gradBias.data<float>() : nullptr);
          backwardWeightsAvx512(sizes_, samples, std::min(firstQuad(group + 1) * 4, shape_.outChannels) - o,
                                taps(), copies_.data<float>() + n * copiedSample() + i * channel_, packed,
                                first + n > 0, gradWeight.data<float>() + o * sizes_.taps + i * taps());
        }
      }
    });
  });
}

}  // namespace

std::unique_ptr<Conv2dPlan> planPixelConv2d(const Conv2dShape& shape, Context& context) {
  shape.validate();
  require(pixelConv2dSupports(shape, context),
          "conv2d: vectors of pixels need one group, stride and dilation 1, no padding, a small image and "
          "AVX-512");
  return std::make_unique<PixelPlan>(shape, context);
}
#else
std::unique_ptr<Conv2dPlan> planPixelConv2d(const Conv2dShape&, Context&) {
  return nullptr;
}
#endif

}  // namespace muster::cpu
