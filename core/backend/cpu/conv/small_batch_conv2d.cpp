#include "muster/core/backend/cpu/conv/small_batch_conv2d.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "muster/core/backend/cpu/conv/small_batch_conv2d_kernels.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/device/math_mode.h"
#include "muster/core/ops/detail/expect.h"

namespace muster::cpu {

bool smallBatchGradientsSupport(const Conv2dShape& shape, const Context& context) {
  const std::array<std::int64_t, 2> ones{1, 1}, none{0, 0};
  const Shape out = shape.output();
  constexpr std::int64_t kMostPixels = 4096;  // so that a group's gradients fit into the second cache
#if defined(__x86_64__)
  return shape.batch * out[2] * out[3] <= kMostPixels && instructionSet() == InstructionSet::Avx2 &&
         context.mathMode() != MathMode::BFloat16 && shape.groups == 1 && shape.stride == ones &&
         shape.dilation == ones && shape.padding == none && (shape.kernel[1] == 3 || shape.kernel[1] == 5);
#else
  static_cast<void>(out), static_cast<void>(kMostPixels), static_cast<void>(context);
  return false;
#endif
}

#if defined(__x86_64__)
namespace {

using namespace small_batch;

class SmallBatchPlan final : public Conv2dPlan {
 public:
  SmallBatchPlan(const Conv2dShape& shape, std::unique_ptr<Conv2dPlan> plan, Context& context)
      : shape_(shape),
        plan_(std::move(plan)),
        context_(context),
        out_(shape.output()),
        lanes_((shape.inChannels + kVector - 1) / kVector * kVector) {
    if (ownWeights()) {
      gradY_ = Tensor::empty({groups(), shape.batch * outPixels(), kGroup});
      sums_.resize(static_cast<std::size_t>(shape.outChannels));
    }
    if (!ownData()) return;
    weight_ = Tensor::zeros({taps(), shape.outChannels, lanes_});
    gradX_ = Tensor::zeros({shape.batch * shape.height, shape.width, lanes_});
  }

  Layout inputLayout() const override { return plan_->inputLayout(); }
  Layout outputLayout() const override { return plan_->outputLayout(); }
  std::string implementation() const override { return plan_->implementation() + "; gradients AVX2"; }

  void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) override {
    plan_->forward(x, weight, bias, y);
  }
  void backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) override;
  void backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight, Tensor& gradBias) override;

 private:
  bool ownWeights() const {
    return inputLayout() == Layout::RowMajor || inputLayout() == Layout::ChannelsLast;
  }
  bool ownData() const {
    return inputLayout() == Layout::ChannelsLast && outputLayout() == Layout::ChannelsLast;
  }
  std::int64_t taps() const { return shape_.kernel[0] * shape_.kernel[1]; }
  std::int64_t outPixels() const { return out_[2] * out_[3]; }
  std::int64_t groups() const { return (shape_.outChannels + kGroup - 1) / kGroup; }
  std::int64_t channelsOf(std::int64_t group) const {
    return std::min(kGroup, shape_.outChannels - group * kGroup);
  }
  void expect(const char* name, const Tensor& tensor, const Shape& shape, Layout layout) const {
    muster::detail::expectTensor("conv2d", name, tensor, {shape, layout});
  }
  /// Also fills sums_.
  void packGradY(const Tensor& gradY);
  void packWeight(const Tensor& weight);
  WeightRow rowOf(const Tensor& x, std::int64_t channel, std::int64_t kernelRow) const;

  const Conv2dShape shape_;
  const std::unique_ptr<Conv2dPlan> plan_;
  Context& context_;
  const Shape out_;
  const std::int64_t lanes_;  // input channels, rounded up to whole vectors
  Tensor gradY_;              // [group of output channels][sample][row][column][kGroup]
  std::vector<double> sums_;  // [output channel] of gradY
  Tensor weight_;             // [kernel row][kernel column][output channel][lane]; padding stays zero
  Tensor gradX_;              // [sample][row][column][lane]
};

void SmallBatchPlan::packGradY(const Tensor& gradY) {
  const bool blocks = outputLayout() == Layout::ChannelBlocks, last = outputLayout() == Layout::ChannelsLast;
  const std::int64_t channels = shape_.outChannels, height = out_[2], width = out_[3],
                     pixels = height * width;
  const std::int64_t pixel = last ? channels : blocks ? kGroup : 1;
  float* to = gradY_.data<float>();
  std::ranges::fill(sums_, 0.0);
  for (std::int64_t group = 0; group < groups(); ++group)
    for (std::int64_t n = 0; n < shape_.batch; ++n) {
      const float* from = gradY.data<float>() + (last     ? n * pixels * channels + group * kGroup
                                                 : blocks ? (n * groups() + group) * pixels * kGroup
                                                          : (n * channels + group * kGroup) * pixels);
      for (std::int64_t row = 0; row < height; ++row, from += width * pixel, to += width * kGroup) {
        float sums[kGroup];
        if (last || blocks) {
          packPixelsAvx2(width, channelsOf(group), pixel, from, to, sums);
        } else {
          for (std::int64_t c = 0; c < channelsOf(group); ++c)
            for (std::int64_t p = 0; p < width; ++p) to[p * kGroup + c] = from[c * pixels + p];
          packPixelsAvx2(width, channelsOf(group), kGroup, to, to, sums);
        }
        for (std::int64_t c = 0; c < channelsOf(group); ++c) sums_[group * kGroup + c] += sums[c];
      }
    }
}

WeightRow SmallBatchPlan::rowOf(const Tensor& x, std::int64_t channel, std::int64_t kernelRow) const {
  const std::int64_t pixels = shape_.height * shape_.width;
  const bool last = inputLayout() == Layout::ChannelsLast;
  const std::int64_t pixel = last ? shape_.inChannels : 1, row = shape_.width * pixel;
  return {.batch = shape_.batch,
          .height = out_[2],
          .width = out_[3],
          .x = x.data<float>() + (last ? channel : channel * pixels) + kernelRow * row,
          .sample = pixels * shape_.inChannels,
          .row = row,
          .pixel = pixel,
          .gradY = nullptr};
}

void SmallBatchPlan::backwardWeights(const Tensor& x, const Tensor& gradY, Tensor& gradWeight,
                                     Tensor& gradBias) {
  if (!ownWeights()) return plan_->backwardWeights(x, gradY, gradWeight, gradBias);
  expect("x", x, shape_.input(), inputLayout());
  expect("gradY", gradY, out_, outputLayout());
  expect("gradWeight", gradWeight, shape_.weight(), Layout::RowMajor);
  if (gradBias.defined()) expect("gradBias", gradBias, Shape{shape_.outChannels}, Layout::RowMajor);
  packGradY(gradY);
  const std::int64_t height = shape_.kernel[0], width = shape_.kernel[1],
                     perOutput = shape_.inChannels * taps(), groupSize = shape_.batch * outPixels() * kGroup;
  float* gw = gradWeight.data<float>();
  // One thread forms each sum, so its order is always the same.
  parallelFor(context_, shape_.inChannels, 1, [&](std::int64_t begin, std::int64_t end) {
    float sums[kMostWidth * kGroup];
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t group = 0; group < groups(); ++group)
        for (std::int64_t ky = 0; ky < height; ++ky) {
          WeightRow row = rowOf(x, i, ky);
          row.gradY = gradY_.data<float>() + group * groupSize;
          weightRowAvx2(row, static_cast<int>(width), channelsOf(group) > kVector ? 2 : 1, sums);
          float* to = gw + group * kGroup * perOutput + (i * height + ky) * width;
          for (std::int64_t c = 0; c < channelsOf(group); ++c)
            for (std::int64_t k = 0; k < width; ++k) to[c * perOutput + k] = sums[k * kGroup + c];
        }
  });
  if (gradBias.defined()) std::ranges::copy(sums_, gradBias.data<float>());
}

void SmallBatchPlan::packWeight(const Tensor& weight) {
  const float* from = weight.data<float>();
  float* to = weight_.data<float>();
  const std::int64_t outputs = shape_.outChannels, inputs = shape_.inChannels;
  for (std::int64_t o = 0; o < outputs; ++o, from += inputs * taps())
    for (std::int64_t tap = 0; tap < taps(); ++tap)
      for (std::int64_t i = 0; i < inputs; ++i) to[(tap * outputs + o) * lanes_ + i] = from[i * taps() + tap];
}

void SmallBatchPlan::backwardData(const Tensor& gradY, const Tensor& weight, Tensor& gradX) {
  if (!ownData()) return plan_->backwardData(gradY, weight, gradX);
  expect("gradY", gradY, out_, outputLayout());
  expect("weight", weight, shape_.weight(), Layout::RowMajor);
  expect("gradX", gradX, shape_.input(), inputLayout());
  packWeight(weight);
  const std::int64_t outputs = shape_.outChannels, inputs = shape_.inChannels,
                     rowFloats = shape_.width * lanes_;
  // Threads split rows of gradX; a pixel adds its kernel taps in the same order for any split.
  parallelFor(context_, shape_.batch * shape_.height, 1, [&](std::int64_t begin, std::int64_t end) {
    float* sums = gradX_.data<float>();
    std::fill(sums + begin * rowFloats, sums + end * rowFloats, 0.0f);
    for (std::int64_t tap = 0; tap < taps(); ++tap)
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t n = row / shape_.height, y = row % shape_.height - tap / shape_.kernel[1];
        if (y < 0 || y >= out_[2]) continue;
        for (std::int64_t lane = 0; lane < lanes_; lane += 3 * kVector)
          inputRowAvx2(out_[3], outputs, lanes_,
                       static_cast<int>(std::min<std::int64_t>(3, (lanes_ - lane) / kVector)),
                       gradY.data<float>() + (n * out_[2] + y) * out_[3] * outputs,
                       weight_.data<float>() + tap * outputs * lanes_ + lane,
                       sums + row * rowFloats + tap % shape_.kernel[1] * lanes_ + lane);
      }
    float* to = gradX.data<float>();
    for (std::int64_t pixel = begin * shape_.width; pixel < end * shape_.width; ++pixel)
      std::copy_n(sums + pixel * lanes_, inputs, to + pixel * inputs);
  });
}

}  // namespace

std::unique_ptr<Conv2dPlan> withSmallBatchGradients(const Conv2dShape& shape,
                                                    std::unique_ptr<Conv2dPlan> plan, Context& context) {
  return std::make_unique<SmallBatchPlan>(shape, std::move(plan), context);
}
#else
std::unique_ptr<Conv2dPlan> withSmallBatchGradients(const Conv2dShape&, std::unique_ptr<Conv2dPlan> plan,
                                                    Context&) {
  return plan;
}
#endif

}  // namespace muster::cpu
