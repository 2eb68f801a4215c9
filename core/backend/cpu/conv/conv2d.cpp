#include "muster/core/ops/conv2d.h"

#include <algorithm>

#include "muster/core/backend/cpu/bfloat16.h"
#include "muster/core/backend/cpu/conv/direct_conv2d.h"
#include "muster/core/backend/cpu/conv/onednn_conv2d.h"
#include "muster/core/backend/cpu/conv/pixel_conv2d.h"
#include "muster/core/backend/cpu/conv/pointwise_conv2d.h"
#include "muster/core/backend/cpu/conv/small_batch_conv2d.h"
#include "muster/core/backend/cpu/conv/winograd_conv2d.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/base/error.h"

namespace muster::cpu {
namespace {

/// Inputs of at most this many channels stay row-major: oneDNN reads them, and a block of sixteen would be
/// mostly padding. Such an input is usually the network's, without a gradient.
constexpr std::int64_t kFewChannels = 3;

bool isFirstLayer(const Conv2dShape& shape) {
  return shape.inChannels <= kFewChannels;
}

OneDnnConv2dPlanner plannerFor(const Conv2dShape& shape, Context& context, Conv2dChoice choice) {
  switch (choice) {
    case Conv2dChoice::ChannelsLast:
      return {shape, Layout::ChannelsLast, Layout::ChannelsLast, context};
    case Conv2dChoice::ChannelBlocks:
      return {shape, isFirstLayer(shape) ? Layout::RowMajor : Layout::ChannelBlocks, Layout::ChannelBlocks,
              context};
    default:
      return {shape, Layout::RowMajor, Layout::RowMajor, context};
  }
}

/// Average ratio of vector length to used lanes for `count` values in vectors of `length`.
double waste(std::int64_t count, std::int64_t length = 16) {
  const std::int64_t lanes = (count + length - 1) / length * length;
  return static_cast<double>(lanes) / static_cast<double>(count);
}

/// AMX computes sixteen times as many products per instruction, but only over channels.
bool usesAmx(const Context& context) {
  return context.mathMode() == MathMode::BFloat16 && hasAmx();
}

/// oneDNN's vectors hold channels, ours samples, so ours are faster for channel counts that waste lanes.
/// examples/docs/measurements.md has the measurements for the bounds.
/// @param batch  waste of the vectors of samples.
bool directIsFaster(const Conv2dShape& shape, const Context& context, double batch) {
  if (usesAmx(context) && !isFirstLayer(shape)) return false;
  const double forward = waste(shape.outChannels), inputGradient = waste(shape.inChannels);
  const double theirs = isFirstLayer(shape) ? forward : (2 * forward + inputGradient) / 3;
  const double bound = isFirstLayer(shape) || shape.kernel[1] >= 5 ? 1.2 : 1.8;
  return theirs >= bound * batch;
}

bool isDepthwise(const Conv2dShape& shape) {
  return shape.groups > 1 && shape.groups == shape.inChannels && shape.groups == shape.outChannels;
}

/// Whether each block of channels belongs to one group and has no padding.
bool inWholeBlocks(const Conv2dShape& shape) {
  return shape.inChannels / shape.groups % kLayoutBlock == 0 &&
         shape.outChannels / shape.groups % kLayoutBlock == 0;
}

/// Whether to prefer oneDNN's kernels for blocks of channels to those for channels-last, which are a little
/// faster, but less than a reorder costs. oneDNN uses AMX only for channels-last.
bool prefersBlocks(const Conv2dShape& shape, const Context& context, Layout offered) {
  if (isFirstLayer(shape) || isDepthwise(shape)) return true;
  if (usesAmx(context) && shape.groups == 1) return false;
  return inWholeBlocks(shape) && (offered == Layout::ChannelBlocks || shape.groups > 1);
}

/// Which passes are faster with Winograd's algorithm. This depends on the saved multiplications and on the
/// number of tiles that share transformed weights. examples/docs/measurements.md has the
/// measurements for the bounds.
WinogradPasses winogradIsFaster(const Conv2dShape& shape) {
  const Shape out = shape.output();
  const auto tiles = [](std::int64_t height, std::int64_t width) {
    return static_cast<double>((height + 3) / 4 * ((width + 3) / 4));
  };
  constexpr double kLeastTiles = 8;
  const auto pays = [&](double tilesOfImage) {
    const double saved = static_cast<double>(9 * out[2] * out[3]) / (36 * tilesOfImage);
    return saved >= 2 && tilesOfImage * static_cast<double>(shape.batch) >= kLeastTiles;
  };
  const double outputs = tiles(out[2], out[3]), inputs = tiles(shape.height, shape.width);
  return {pays(outputs), pays(inputs), pays(outputs)};
}

std::unique_ptr<Conv2dPlan> planAuto(const Conv2dShape& shape, Context& context, Layout offered) {
  const bool direct = directConv2dSupports(shape, context);
  const double samples = waste(shape.batch, instructionSet() == InstructionSet::Avx2 ? 8 : 16);
  const Shape out = shape.output();
  const double pixels = waste(out[2] * out[3]);
  if (direct && 1.25 * pixels < samples && pixelConv2dSupports(shape, context) &&
      directIsFaster(shape, context, pixels))
    return planPixelConv2d(shape, context);
  if (direct && directIsFaster(shape, context, samples)) return planDirectConv2d(shape, context);
  if (winogradConv2dSupports(shape, context) && std::min(shape.inChannels, shape.outChannels) >= 32)
    if (const auto passes = winogradIsFaster(shape); passes != WinogradPasses{false, false, false})
      return planWinogradConv2d(shape, context, passes);
  const bool first = isFirstLayer(shape);
  const bool blocks = prefersBlocks(shape, context, offered);
  for (auto choice : {blocks ? Conv2dChoice::ChannelBlocks : Conv2dChoice::ChannelsLast,
                      blocks ? Conv2dChoice::ChannelsLast : Conv2dChoice::ChannelBlocks}) {
    auto planner = plannerFor(shape, context, choice);
    if (!planner.fast(!first)) continue;
    if (choice == Conv2dChoice::ChannelsLast && pointwiseGradientSupports(shape, context))
      return withPointwiseGradient(shape, planner.plan(), context);
    const bool own =
        direct && directIsFaster(shape, context, 1) && smallBatchGradientsSupport(shape, context);
    return own ? withSmallBatchGradients(shape, planner.plan(), context) : planner.plan();
  }
  return direct ? planDirectConv2d(shape, context)
                : plannerFor(shape, context, Conv2dChoice::RowMajor).plan();
}

}  // namespace

std::unique_ptr<Conv2dPlan> planConv2d(const Conv2dShape& shape, Context& context, Conv2dChoice choice,
                                       Layout offered) {
  if (choice == Conv2dChoice::Auto) return planAuto(shape, context, offered);
  require(choice != Conv2dChoice::PaddedChannels, "conv2d: only GPUs pad channels");
  require(choice != Conv2dChoice::ImplicitGemm, "conv2d: only GPUs have ImplicitGemm");
  if (choice == Conv2dChoice::Direct) return planDirectConv2d(shape, context);
  if (choice == Conv2dChoice::Winograd) return planWinogradConv2d(shape, context);
  return plannerFor(shape, context, choice).plan();
}

}  // namespace muster::cpu
