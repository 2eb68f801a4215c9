#include "muster/core/ops/accumulate.h"

#include "muster/built.h"
#include "muster/core/base/error.h"

namespace muster {
namespace {

bool alike(const Tensor& a, const Tensor& b) {
  return a.defined() && a.shape() == b.shape() && a.dtype() == b.dtype() && a.layout() == b.layout() &&
         a.device() == b.device();
}

void requireSummands(std::span<const Tensor> inputs, const Tensor& out) {
  require(!inputs.empty(), "sum: there are no inputs");
  const Tensor& first = inputs[0];
  const bool addable = first.dtype() == DType::Float32 || first.dtype() == DType::Float64;
  if (!first.defined() || !addable)
    throw InvalidArgument(fmt::format("sum: inputs must be float32 or float64, got {}", first.toString()));
  if (!alike(out, first))
    throw InvalidArgument(fmt::format("sum: out is {}, inputs[0] is {}", out.toString(), first.toString()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!alike(inputs[i], first))
      throw InvalidArgument(
          fmt::format("sum: inputs[{}] is {}, inputs[0] is {}", i, inputs[i].toString(), first.toString()));
    require(inputs[i].raw() == out.raw() || !shareMemory(inputs[i], out),
            "sum: out overlaps inputs[{}] in part", i);
  }
}

}  // namespace

void sum(std::span<const Tensor> inputs, Tensor& out, Context& context) {
  requireSummands(inputs, out);
  if (out.device().isCpu()) return cpu::sum(inputs, out, context);
  if constexpr (kCudaBuilt) return cuda::sum(inputs, out, context);
  throw DeviceUnavailable("sum: this build has no CUDA");
}

}  // namespace muster
