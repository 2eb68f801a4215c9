#include "muster/core/ops/sequence.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

void requireSequence(std::string_view op, const Tensor& x, const Tensor& mask) {
  if (!x.defined() || x.dtype() != DType::Float32 || x.layout() != Layout::RowMajor ||
      x.shape().rank() != 3 || x.shape()[1] == 0)
    throw InvalidArgument(fmt::format("{}: expected float32 sequences [N, T, F] of at least one step, got {}",
                                      op, x.toString()));
  if (mask.defined())
    detail::expectTensor(op, "mask", mask,
                         {x.shape().dropLast(), Layout::RowMajor, DType::Float32, x.device()});
}

/// Checks `sequences` [N, T, F] and `rows` [N, F].
void requireReduction(std::string_view op, const Tensor& sequences, const Tensor& mask, std::string_view name,
                      const Tensor& rows) {
  requireSequence(op, sequences, mask);
  const Shape& shape = sequences.shape();
  detail::expectTensor(op, name, rows,
                       {Shape{shape[0], shape[2]}, Layout::RowMajor, DType::Float32, sequences.device()});
}

}  // namespace

void maskSteps(const Tensor& x, const Tensor& mask, Tensor& y, Context& context) {
  requireSequence("mask steps", x, mask);
  detail::expectLike("mask steps", "y", y, x);
  if (x.device().isCpu()) return cpu::maskSteps(x, mask, y, context);
  if constexpr (kCudaBuilt) return cuda::maskSteps(x, mask, y, context);
  throw DeviceUnavailable("mask steps: this build has no CUDA");
}

void lastStepForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context) {
  requireReduction("last step", x, mask, "y", y);
  if (x.device().isCpu()) return cpu::lastStepForward(x, mask, y, context);
  if constexpr (kCudaBuilt) return cuda::lastStepForward(x, mask, y, context);
  throw DeviceUnavailable("last step: this build has no CUDA");
}

void lastStepBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context) {
  requireReduction("last step", gradX, mask, "gradY", gradY);
  if (gradX.device().isCpu()) return cpu::lastStepBackward(gradY, mask, gradX, context);
  if constexpr (kCudaBuilt) return cuda::lastStepBackward(gradY, mask, gradX, context);
  throw DeviceUnavailable("last step: this build has no CUDA");
}

void meanOverTimeForward(const Tensor& x, const Tensor& mask, Tensor& y, Context& context) {
  requireReduction("mean over time", x, mask, "y", y);
  if (x.device().isCpu()) return cpu::meanOverTimeForward(x, mask, y, context);
  if constexpr (kCudaBuilt) return cuda::meanOverTimeForward(x, mask, y, context);
  throw DeviceUnavailable("mean over time: this build has no CUDA");
}

void meanOverTimeBackward(const Tensor& gradY, const Tensor& mask, Tensor& gradX, Context& context) {
  requireReduction("mean over time", gradX, mask, "gradY", gradY);
  if (gradX.device().isCpu()) return cpu::meanOverTimeBackward(gradY, mask, gradX, context);
  if constexpr (kCudaBuilt) return cuda::meanOverTimeBackward(gradY, mask, gradX, context);
  throw DeviceUnavailable("mean over time: this build has no CUDA");
}

}  // namespace muster
