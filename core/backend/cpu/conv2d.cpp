#include "muster/core/ops/conv2d.h"

#include "muster/core/backend/cpu/direct_conv2d.h"
#include "muster/core/backend/cpu/onednn_conv2d.h"

namespace muster::cpu {
namespace {

/// Inputs of so few channels stay row-major before blocks of channels: oneDNN reads them so, and a block of
/// sixteen would be mostly padding. They are a network's input, whose gradient is seldom asked for.
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

/// How many times too long a vector of sixteen is for `count`, on average over the vectors it takes.
double waste(std::int64_t count) {
  const std::int64_t lanes = (count + kLayoutBlock - 1) / kLayoutBlock * kLayoutBlock;
  return static_cast<double>(lanes) / static_cast<double>(count);
}

/// oneDNN's kernels have channels in their vectors, ours samples: ours win where channels fill theirs badly.
/// The bounds are measured, see the README.
bool directIsFaster(const Conv2dShape& shape) {
  const double forward = waste(shape.outChannels), inputGradient = waste(shape.inChannels);
  const double theirs = isFirstLayer(shape) ? forward : (2 * forward + inputGradient) / 3;
  const double bound = shape.kernel[1] >= 5 ? 1.2 : 1.8;
  return theirs >= bound * waste(shape.batch);
}

std::unique_ptr<Conv2dPlan> planAuto(const Conv2dShape& shape, Context& context) {
  const bool direct = directConv2dSupports(shape);
  if (direct && directIsFaster(shape)) return planDirectConv2d(shape, context);
  const bool first = isFirstLayer(shape);
  for (auto choice : {first ? Conv2dChoice::ChannelBlocks : Conv2dChoice::ChannelsLast,
                      first ? Conv2dChoice::ChannelsLast : Conv2dChoice::ChannelBlocks}) {
    auto planner = plannerFor(shape, context, choice);
    if (planner.fast(!first)) return planner.plan();
  }
  return direct ? planDirectConv2d(shape, context)
                : plannerFor(shape, context, Conv2dChoice::RowMajor).plan();
}

}  // namespace

std::unique_ptr<Conv2dPlan> planConv2d(const Conv2dShape& shape, Context& context, Conv2dChoice choice) {
  if (choice == Conv2dChoice::Auto) return planAuto(shape, context);
  if (choice == Conv2dChoice::Direct) return planDirectConv2d(shape, context);
  return plannerFor(shape, context, choice).plan();
}

}  // namespace muster::cpu
