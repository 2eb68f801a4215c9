#include "muster/core/ops/update.h"

#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

void requireOnCpu(const Tensor& x, std::string_view op) {
  if (!x.device().isCpu()) throw DeviceUnavailable(fmt::format("{}: this build has no CUDA", op));
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
  requireOnCpu(blocks.parameters, op);
}

}  // namespace

double updateSgd(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                 Context& context) {
  check(blocks, 0, ranges, clip, "updateSgd");
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
  return cpu::updateNesterovs(blocks, ranges, clip, momentum, context);
}

double updateAdam(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                  const AdamScalars& scalars, Context& context) {
  check(blocks, 2, ranges, clip, "updateAdam");
  if (scalars.t < 1) throw InvalidArgument(fmt::format("updateAdam: t counts from 1, got {}", scalars.t));
  return cpu::updateAdam(blocks, ranges, clip, scalars, context);
}

double updateRmsProp(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     double decay, float epsilon, Context& context) {
  check(blocks, 1, ranges, clip, "updateRmsProp");
  return cpu::updateRmsProp(blocks, ranges, clip, decay, epsilon, context);
}

double updateAdaGrad(const UpdateBlocks& blocks, std::span<const UpdateRange> ranges, GradientClip clip,
                     float epsilon, Context& context) {
  check(blocks, 1, ranges, clip, "updateAdaGrad");
  return cpu::updateAdaGrad(blocks, ranges, clip, epsilon, context);
}

double squaredNorm(const Tensor& x, std::int64_t begin, std::int64_t end, Context& context) {
  const UpdateRange range{.begin = begin, .end = end};
  checkBlock(x, x, "tensor", "squaredNorm");
  checkRanges(x, {&range, 1}, "squaredNorm");
  requireOnCpu(x, "squaredNorm");
  return cpu::squaredNorm(x, begin, end, context);
}

double regularisationPenalty(const Tensor& parameters, std::span<const UpdateRange> ranges,
                             Context& context) {
  checkBlock(parameters, parameters, "parameters", "regularisationPenalty");
  checkRanges(parameters, ranges, "regularisationPenalty");
  requireOnCpu(parameters, "regularisationPenalty");
  return cpu::regularisationPenalty(parameters, ranges, context);
}

}  // namespace muster
