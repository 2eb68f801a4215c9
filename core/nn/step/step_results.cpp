#include "muster/core/nn/step/step_results.h"

#include "muster/core/ops/loss.h"

namespace muster::detail {
namespace {

constexpr auto kLoss = static_cast<std::int64_t>(kLossNumbers);

}  // namespace

StepResults::StepResults(std::size_t outputs, Context& context)
    : context_(context),
      host_(Tensor::pinned({static_cast<std::int64_t>(outputs) * kLoss + 2}, DType::Float64)),
      device_(Tensor::zeros(host_.shape(), DType::Float64, context.device())),
      allLosses_(device_.slice(0, {static_cast<std::int64_t>(outputs) * kLoss})),
      penalty_(device_.slice(static_cast<std::int64_t>(outputs) * kLoss, {1})),
      badGradient_(device_.slice(static_cast<std::int64_t>(outputs) * kLoss + 1, {1})) {
  for (std::size_t i = 0; i < outputs; ++i)
    losses_.push_back(device_.slice(static_cast<std::int64_t>(i) * kLoss, {kLoss}));
}

std::span<const double> StepResults::hostLoss(std::size_t index) const {
  return std::span<const double>(host_.span<double>()).subspan(index * kLossNumbers, kLossNumbers);
}

}  // namespace muster::detail
