#pragma once

#include <algorithm>

#include "muster/core/backend/cpu/conv/direct_conv2d.h"
#include "muster/core/backend/cpu/conv/direct_conv2d_kernels.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/ops/conv2d.h"

namespace muster::cpu::direct {

/// Shared by direct convolutions of all element types: the sizes of a block, the split over threads, and the
/// weights in the kernels' formats. An element of x, gradY and the weights holds one channel in float32, or
/// two adjacent channels in bf16 (see Note [Direct convolution in bf16]).
class DirectPlan : public Conv2dPlan {
 public:
  Layout inputLayout() const override { return Layout::SampleBlocks; }
  Layout outputLayout() const override { return Layout::SampleBlocks; }

 protected:
  /// @param channels  number of channels in an element.
  DirectPlan(const Conv2dShape& shape, Context& context, const Kernels& kernels, std::int64_t channels)
      : shape_(shape),
        context_(context),
        kernels_(kernels),
        block_(blockShapeOf(shape)),
        blocks_((shape.batch + kLayoutBlock - 1) / kLayoutBlock),
        inElements_((shape.inChannels + channels - 1) / channels),
        outElements_((shape.outChannels + channels - 1) / channels),
        padded_(shape.padding[0] > 0 || shape.padding[1] > 0),
        channels_(channels),
        packed_(Tensor::empty(
            {std::max(inElements_ * shape.outChannels, outElements_ * shape.inChannels) * taps()})) {}

  std::int64_t taps() const { return shape_.kernel[0] * shape_.kernel[1]; }
  std::int64_t rowElements() const { return block_.outWidth * kLayoutBlock; }
  std::int64_t outPlane() const { return block_.outHeight * rowElements(); }
  std::int64_t inPlane() const { return block_.inHeight * block_.inWidth * kLayoutBlock; }  // with padding
  std::int64_t xPlane() const { return shape_.height * shape_.width * kLayoutBlock; }

  Tensor perThread(std::int64_t elements) const { return Tensor::zeros({context_.threads(), elements}); }
  static float* ofThread(Tensor& scratch, std::int64_t thread) {
    return scratch.data<float>() + thread * scratch.shape()[1];
  }

  /// Calls f(offset in a plane of x, offset in a plane with padding) for each row of a channel.
  template <typename F>
  void forEachRow(F f) const {
    for (std::int64_t h = 0; h < shape_.height; ++h)
      f(h * shape_.width * kLayoutBlock,
        ((h + shape_.padding[0]) * block_.inWidth + shape_.padding[1]) * kLayoutBlock);
  }

  /// [out][in][ky][kx] to [group of out][element of in][ky][kx][out in the group].
  /// @param element  called with the first weight, the distance to the next channel's, and the channels left.
  template <typename Element>
  void packForward(const Tensor& weight, Element element) {
    const float* w = weight.data<float>();
    float* to = packed_.data<float>();
    for (std::int64_t o = 0; o < shape_.outChannels; o += kernels_.forwardGroup) {
      const std::int64_t group = std::min(kernels_.forwardGroup, shape_.outChannels - o);
      for (std::int64_t i = 0; i < shape_.inChannels; i += channels_)
        for (std::int64_t tap = 0; tap < taps(); ++tap)
          for (std::int64_t c = 0; c < group; ++c)
            *to++ =
                element(w + ((o + c) * shape_.inChannels + i) * taps() + tap, taps(), shape_.inChannels - i);
    }
  }
  /// [out][in][ky][kx] to [group of in][ky][element of out][in in the group][kx].
  template <typename Element>
  void packBackward(const Tensor& weight, Element element) {
    const float* w = weight.data<float>();
    float* to = packed_.data<float>();
    const std::int64_t height = shape_.kernel[0], width = shape_.kernel[1];
    const std::int64_t perOutput = shape_.inChannels * taps();
    for (std::int64_t i = 0; i < shape_.inChannels; i += kernels_.backwardGroup) {
      const std::int64_t group = std::min(kernels_.backwardGroup, shape_.inChannels - i);
      for (std::int64_t ky = 0; ky < height; ++ky)
        for (std::int64_t o = 0; o < shape_.outChannels; o += channels_)
          for (std::int64_t c = 0; c < group; ++c)
            for (std::int64_t kx = 0; kx < width; ++kx)
              *to++ = element(w + o * perOutput + ((i + c) * height + ky) * width + kx, perOutput,
                              shape_.outChannels - o);
    }
  }

  /// Block n of the batch; the last one may have fewer samples.
  BlockShape blockAt(std::int64_t n) const {
    BlockShape block = block_;
    block.samples = std::min(kLayoutBlock, shape_.batch - n * kLayoutBlock);
    return block;
  }

  /// Adds a row's contributions to all input channels. @param gradYRow  [element of out][column][16].
  void backwardRow(const BlockShape& block, std::int64_t row, const float* gradYRow, float* gradX) const {
    BlockShape elements = block;
    elements.outChannels = outElements_;
    const std::int64_t weightsPerInput = outElements_ * taps();
    for (std::int64_t i = 0; i < shape_.inChannels; i += kernels_.backwardGroup) {
      const std::int64_t group = std::min(kernels_.backwardGroup, shape_.inChannels - i);
      kernels_.backwardData(elements, static_cast<int>(group), row, gradYRow,
                            packed_.data<float>() + i * weightsPerInput, gradX + i * inPlane());
    }
  }

  const Conv2dShape shape_;
  Context& context_;
  const Kernels& kernels_;
  const BlockShape block_;  // in channels
  const std::int64_t blocks_, inElements_, outElements_;
  const bool padded_;
  const std::int64_t channels_;  // in an element
  Tensor packed_;                // the weights in the running kernel's format
};

}  // namespace muster::cpu::direct
