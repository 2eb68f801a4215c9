#include "muster/core/ops/update.h"

#include <cmath>
#include <string_view>

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"
#include "muster/core/ops/loss.h"

namespace muster {
namespace {

void requireRanges(std::string_view op, std::span<const UpdateRange> ranges, std::int64_t elements) {
  for (const auto& range : ranges)
    require(range.begin >= 0 && range.begin <= range.end && range.end <= elements,
            "{}: the range [{}, {}) is not within {} elements", op, range.begin, range.end, elements);
}

}  // namespace

void writeUpdateNumbers(const UpdateRule& rule, double learningRate, std::int64_t t, double gradientScale,
                        Tensor& numbers) {
  detail::expectTensor("updateNumbers", "numbers", numbers,
                       {.shape = {kUpdateNumbers}, .dtype = DType::Float64});
  require(t >= 1, "updateNumbers: t counts from 1, got {}", t);
  auto& step = *reinterpret_cast<update::StepNumbers*>(numbers.data<double>());
  step = {.learningRate = learningRate, .gradientScale = gradientScale};
  const auto write = [&](const auto& r) {
    if constexpr (requires { r.numbers(1.0, step.rule); }) r.numbers(static_cast<double>(t), step.rule);
  };
  std::visit(write, rule);
}

UpdatePlan::UpdatePlan(const UpdateRule& rule, std::int64_t elements, Device device)
    : states_(std::visit([](const auto& r) { return r.kStates; }, rule)),
      elements_(elements),
      device_(device) {}

void UpdatePlan::run(const UpdateBlocks& blocks, const Tensor& numbers, Tensor& penalty, const Tensor& losses,
                     const UpdateGuard& guard) {
  const auto expectBlock = [&](std::string_view name, const Tensor& block) {
    detail::expectTensor("update", name, block, {.shape = {elements_}, .device = device_});
  };
  const auto expectNumbers = [&](std::string_view name, const Tensor& tensor, std::int64_t count) {
    detail::expectTensor("update", name, tensor,
                         {.shape = {count}, .dtype = DType::Float64, .device = device_});
  };
  expectBlock("parameters", blocks.parameters);
  expectBlock("gradients", blocks.gradients);
  for (int i = 0; i < states_; ++i) expectBlock("state", blocks.state[static_cast<std::size_t>(i)]);
  expectNumbers("numbers", numbers, kUpdateNumbers);
  expectNumbers("penalty", penalty, 1);
  if (losses.defined()) expectNumbers("losses", losses, losses.elements());
  const auto dataOf = [&](std::string_view name, const Tensor& tensor) -> double* {
    if (!tensor.defined()) return nullptr;
    expectNumbers(name, tensor, 1);
    return tensor.data<double>();
  };
  const Guard places{dataOf("badGradient", guard.badGradient), dataOf("refused", guard.refused)};
  compute(blocks, reinterpret_cast<const update::StepNumbers*>(numbers.data<double>()),
          penalty.data<double>(),
          losses.defined() ? std::span<const double>(losses.data<double>(), losses.elements())
                           : std::span<const double>(),
          places);
}

std::unique_ptr<UpdatePlan> planUpdate(const UpdateSettings& settings, std::int64_t elements,
                                       std::span<const UpdateRange> ranges, Context& context) {
  requireRanges("planUpdate", ranges, elements);
  for (const double setting : {settings.weightDecay, settings.clipNorm, settings.clipValue})
    require(std::isfinite(setting) && setting >= 0,
            "planUpdate: weight decay and clipping must be finite and not negative, got {}", setting);
  std::vector<UpdateRange> own(ranges.begin(), ranges.end());
  for (auto& range : own)
    if (range.regularised) range.weightDecay += static_cast<float>(settings.weightDecay);
  if (context.device().isCpu()) return cpu::planUpdate(settings, elements, std::move(own), context);
  if constexpr (kCudaBuilt) return cuda::planUpdate(settings, elements, std::move(own), context);
  throw DeviceUnavailable("planUpdate: this build has no CUDA");
}

double updateOnce(const UpdateSettings& settings, const UpdateBlocks& blocks,
                  std::span<const UpdateRange> ranges, Context& context, std::int64_t t,
                  double gradientScale) {
  const auto plan = planUpdate(settings, blocks.parameters.elements(), ranges, context);
  Tensor numbers = Tensor::zeros({kUpdateNumbers}, DType::Float64);
  writeUpdateNumbers(settings.rule, 1, t, gradientScale, numbers);
  Tensor penalty = Tensor::zeros({1}, DType::Float64, context.device());
  const Tensor there = copyTo(numbers, context.device());
  plan->run(blocks, there, penalty);
  context.synchronize();
  return *copyTo(penalty, Device::cpu()).data<double>();
}

void updateSgd(Tensor& parameters, const Tensor& gradients, float learningRate, Context& context) {
  detail::expectTensor("updateSgd", "gradients", gradients,
                       {.shape = parameters.shape(), .device = parameters.device()});
  const Shape flat{parameters.elements()};
  const UpdateRange all{.end = parameters.elements(), .learningRate = learningRate};
  updateOnce({}, {parameters.reshape(flat), gradients.reshape(flat), {}}, {&all, 1}, context);
}

double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context) {
  detail::expectTensor("squaredNorm", "x", x, {.shape = x.shape(), .device = x.device()});
  const UpdateRange range{.begin = begin, .end = end};
  requireRanges("squaredNorm", {&range, 1}, x.elements());
  if (x.device().isCpu()) return cpu::squaredNorm(x, begin, end, context);
  if constexpr (kCudaBuilt) return cuda::squaredNorm(x, begin, end, context);
  throw DeviceUnavailable("squaredNorm: this build has no CUDA");
}

double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges,
                             Context& context) {
  detail::expectTensor("regularisationPenalty", "parameters", parameters,
                       {.shape = parameters.shape(), .device = parameters.device()});
  requireRanges("regularisationPenalty", ranges, parameters.elements());
  if (parameters.device().isCpu()) return cpu::regularisationPenalty(parameters, ranges, context);
  if constexpr (kCudaBuilt) return cuda::regularisationPenalty(parameters, ranges, context);
  throw DeviceUnavailable("regularisationPenalty: this build has no CUDA");
}

}  // namespace muster
