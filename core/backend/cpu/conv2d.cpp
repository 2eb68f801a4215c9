#include "muster/core/ops/conv2d.h"

#include "muster/core/backend/cpu/direct_conv2d.h"
#include "muster/core/backend/cpu/onednn_conv2d.h"
#include "muster/core/base/error.h"

namespace muster::cpu {
namespace {

/// Inputs of so few channels stay row-major before blocks of channels: oneDNN reads them so, and a block of
/// sixteen would be mostly padding.
constexpr std::int64_t kFewChannels = 3;

OneDnnConv2dPlanner plannerFor(const Conv2dShape& shape, Context& context, Conv2dChoice choice) {
  switch (choice) {
    case Conv2dChoice::ChannelsLast:
      return {shape, Layout::ChannelsLast, Layout::ChannelsLast, context};
    case Conv2dChoice::ChannelBlocks:
      return {shape, shape.inChannels <= kFewChannels ? Layout::RowMajor : Layout::ChannelBlocks,
              Layout::ChannelBlocks, context};
    default:
      return {shape, Layout::RowMajor, Layout::RowMajor, context};
  }
}

std::unique_ptr<Conv2dPlan> planAuto(const Conv2dShape& shape, Context& context) {
  if (directConv2dSupports(shape)) return planDirectConv2d(shape, context);
  const bool few = shape.inChannels <= kFewChannels;
  const auto first = few ? Conv2dChoice::ChannelBlocks : Conv2dChoice::ChannelsLast;
  const auto second = few ? Conv2dChoice::ChannelsLast : Conv2dChoice::ChannelBlocks;
  for (auto choice : {first, second}) {
    // Few channels mean a network's input, whose gradient nobody asks for.
    auto planner = plannerFor(shape, context, choice);
    if (planner.fast(!few)) return planner.plan();
  }
  return plannerFor(shape, context, Conv2dChoice::RowMajor).plan();
}

}  // namespace

std::unique_ptr<Conv2dPlan> planConv2d(const Conv2dShape& shape, Context& context, Conv2dChoice choice) {
  if (choice == Conv2dChoice::Auto) return planAuto(shape, context);
  if (choice == Conv2dChoice::Direct) return planDirectConv2d(shape, context);
  return plannerFor(shape, context, choice).plan();
}

}  // namespace muster::cpu
