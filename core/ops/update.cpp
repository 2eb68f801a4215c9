#include "muster/core/ops/update.h"

#include <cmath>
#include <string_view>
#include <vector>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"
#include "muster/core/ops/loss.h"

namespace muster {
namespace {

void requireBackend(const Tensor& x, std::string_view op) {
  if (!x.device().isCpu() && !kCudaBuilt)
    throw DeviceUnavailable(fmt::format("{}: this build has no CUDA", op));
}

// Sentences are composed only on failure: these checks stand in every step, which allocates nothing.

void checkBlock(const Tensor& block, const Tensor& parameters, std::string_view name, std::string_view op) {
  if (block.defined() && block.dtype() == DType::Float32 && block.layout() == Layout::RowMajor &&
      block.elements() == parameters.elements() && block.device() == parameters.device())
    return;
  throw InvalidArgument(
      fmt::format("{}: the {} must be float32, row-major and as long as the parameters ({}), got {}", op,
                  name, parameters.toString(), block.toString()));
}

void checkRanges(const Tensor& parameters, std::span<const UpdateRange> ranges, std::string_view op) {
  for (const auto& range : ranges)
    if (range.begin < 0 || range.begin > range.end || range.end > parameters.elements())
      throw InvalidArgument(fmt::format("{}: the range [{}, {}) does not lie in {} elements", op, range.begin,
                                        range.end, parameters.elements()));
}

void check(const UpdateBlocks& blocks, int states, std::span<const UpdateRange> ranges, GradientClip clip,
           std::string_view op) {
  checkBlock(blocks.parameters, blocks.parameters, "parameters", op);
  checkBlock(blocks.gradients, blocks.parameters, "gradients", op);
  for (int i = 0; i < states; ++i) checkBlock(blocks.state[i], blocks.parameters, "updater's state", op);
  checkRanges(blocks.parameters, ranges, op);
  if (clip.clipValue < 0)
    throw InvalidArgument(fmt::format("{}: clipValue must not be negative, got {}", op, clip.clipValue));
  requireBackend(blocks.parameters, op);
}

}  // namespace

double updateSgd(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                 Context& context) {
  check(blocks, 0, ranges, clip, "updateSgd");
  if constexpr (kCudaBuilt)
    if (!blocks.parameters.device().isCpu()) return cuda::updateSgd(blocks, ranges, clip, context);
  return cpu::updateSgd(blocks, ranges, clip, context);
}

void updateSgd(Tensor& parameters, const Tensor& gradients, float learningRate, Context& context) {
  detail::expectTensor("updateSgd", "gradients", gradients,
                       {.shape = parameters.shape(), .device = parameters.device()});
  const UpdateRange all{.end = parameters.elements(), .learningRate = learningRate};
  updateSgd({.parameters = parameters, .gradients = gradients, .state = {}}, {&all, 1}, {}, context);
}

double updateNesterovs(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                       float momentum, Context& context) {
  check(blocks, 1, ranges, clip, "updateNesterovs");
  if constexpr (kCudaBuilt)
    if (!blocks.parameters.device().isCpu())
      return cuda::updateNesterovs(blocks, ranges, clip, momentum, context);
  return cpu::updateNesterovs(blocks, ranges, clip, momentum, context);
}

double updateAdam(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                  const AdamScalars& scalars, Context& context) {
  check(blocks, 2, ranges, clip, "updateAdam");
  if (scalars.t < 1) throw InvalidArgument(fmt::format("updateAdam: t counts from 1, got {}", scalars.t));
  if constexpr (kCudaBuilt)
    if (!blocks.parameters.device().isCpu()) return cuda::updateAdam(blocks, ranges, clip, scalars, context);
  return cpu::updateAdam(blocks, ranges, clip, scalars, context);
}

double updateRmsProp(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     double decay, float epsilon, Context& context) {
  check(blocks, 1, ranges, clip, "updateRmsProp");
  if constexpr (kCudaBuilt)
    if (!blocks.parameters.device().isCpu())
      return cuda::updateRmsProp(blocks, ranges, clip, decay, epsilon, context);
  return cpu::updateRmsProp(blocks, ranges, clip, decay, epsilon, context);
}

double updateAdaGrad(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     float epsilon, Context& context) {
  check(blocks, 1, ranges, clip, "updateAdaGrad");
  if constexpr (kCudaBuilt)
    if (!blocks.parameters.device().isCpu())
      return cuda::updateAdaGrad(blocks, ranges, clip, epsilon, context);
  return cpu::updateAdaGrad(blocks, ranges, clip, epsilon, context);
}

double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context) {
  const UpdateRange range{.begin = begin, .end = end};
  checkBlock(x, x, "tensor", "squaredNorm");
  checkRanges(x, {&range, 1}, "squaredNorm");
  requireBackend(x, "squaredNorm");
  if constexpr (kCudaBuilt)
    if (!x.device().isCpu()) return cuda::squaredNorm(x, begin, end, context);
  return cpu::squaredNorm(x, begin, end, context);
}

double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges,
                             Context& context) {
  checkBlock(parameters, parameters, "parameters", "regularisationPenalty");
  checkRanges(parameters, ranges, "regularisationPenalty");
  requireBackend(parameters, "regularisationPenalty");
  if constexpr (kCudaBuilt)
    if (!parameters.device().isCpu()) return cuda::regularisationPenalty(parameters, ranges, context);
  return cpu::regularisationPenalty(parameters, ranges, context);
}

namespace {

/// The functions above, called with each step's numbers.
class CpuUpdatePlan final : public UpdatePlan {
 public:
  CpuUpdatePlan(const UpdateSettings& settings, std::span<const UpdateRange> ranges, Context& context)
      : settings_(settings), factors_(ranges.begin(), ranges.end()), ranges_(factors_), context_(context) {}

  void run(const UpdateBlocks& blocks, const Tensor& numbers, Tensor& penalty,
           const Tensor& losses) override {
    if (losses.defined() && !good(losses.span<double>())) {
      *penalty.data<double>() = 0;
      return;
    }
    const auto* const step = numbers.data<double>();
    for (std::size_t i = 0; i < ranges_.size(); ++i)
      ranges_[i].learningRate = static_cast<float>(step[0] * factors_[i].learningRate);
    const GradientClip clip{.scale = static_cast<float>(step[4] * normScale(blocks.gradients, step[4])),
                            .clipValue = static_cast<float>(settings_.clipValue)};
    *penalty.data<double>() = apply(blocks, clip, static_cast<std::int64_t>(step[1]));
  }

 private:
  static bool good(std::span<const double> losses) {
    for (std::size_t i = 0; i + kLossNumbers <= losses.size(); i += kLossNumbers)
      if (!std::isfinite(losses[i]) || !(losses[i + 1] >= 0) || losses[i + 2] >= 0) return false;
    return true;
  }

  double normScale(const Tensor& gradients, double gradientScale) const {
    if (settings_.clipNorm == 0) return 1;
    double squares = 0;
    for (const auto& range : ranges_) squares += squaredNorm(gradients, range.begin, range.end, context_);
    const double norm = gradientScale * std::sqrt(squares);
    return norm > settings_.clipNorm ? settings_.clipNorm / norm : 1;
  }

  double apply(const UpdateBlocks& blocks, GradientClip clip, std::int64_t t) {
    const auto epsilon = static_cast<float>(settings_.epsilon);
    switch (settings_.rule) {
      case UpdateSettings::Rule::Sgd:
        return updateSgd(blocks, ranges_, clip, context_);
      case UpdateSettings::Rule::Nesterovs:
        return updateNesterovs(blocks, ranges_, clip, static_cast<float>(settings_.momentum), context_);
      case UpdateSettings::Rule::Adam:
        return updateAdam(blocks, ranges_, clip,
                          {.beta1 = settings_.beta1,
                           .beta2 = settings_.beta2,
                           .epsilon = settings_.epsilon,
                           .t = t,
                           .weightDecay = static_cast<float>(settings_.weightDecay)},
                          context_);
      case UpdateSettings::Rule::RmsProp:
        return updateRmsProp(blocks, ranges_, clip, settings_.decay, epsilon, context_);
      case UpdateSettings::Rule::AdaGrad:
        return updateAdaGrad(blocks, ranges_, clip, epsilon, context_);
    }
    return 0;
  }

  UpdateSettings settings_;
  std::vector<UpdateRange> factors_, ranges_;
  Context& context_;
};

}  // namespace

void writeUpdateNumbers(const UpdateSettings& settings, double learningRate, std::int64_t t,
                        double gradientScale, Tensor& numbers) {
  detail::expectTensor("updateNumbers", "numbers", numbers,
                       {.shape = {kUpdateNumbers}, .dtype = DType::Float64});
  if (t < 1) throw InvalidArgument(fmt::format("updateNumbers: t counts from 1, got {}", t));
  auto* const to = numbers.data<double>();
  to[0] = learningRate;
  to[1] = static_cast<double>(t);
  to[2] = 1 / (1 - std::pow(settings.beta1, to[1]));
  to[3] = 1 / (1 - std::pow(settings.beta2, to[1]));
  to[4] = gradientScale;
}

std::unique_ptr<UpdatePlan> planUpdate(const UpdateSettings& settings, std::int64_t elements,
                                       std::span<const UpdateRange> ranges, Context& context) {
  for (const auto& range : ranges)
    require(range.begin >= 0 && range.begin <= range.end && range.end <= elements,
            "planUpdate: the range [{}, {}) does not lie in {} elements", range.begin, range.end, elements);
  for (const double setting : {settings.weightDecay, settings.clipNorm, settings.clipValue})
    require(std::isfinite(setting) && setting >= 0,
            "planUpdate: weight decay and clipping must be finite and not negative, got {}", setting);
  if (context.device().isCpu()) return std::make_unique<CpuUpdatePlan>(settings, ranges, context);
  if constexpr (kCudaBuilt) return cuda::planUpdate(settings, elements, ranges, context);
  throw DeviceUnavailable("planUpdate: this build has no CUDA");
}

}  // namespace muster
