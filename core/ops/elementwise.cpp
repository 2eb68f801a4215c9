#include "muster/core/ops/elementwise.h"

#include "muster/built.h"
#include "muster/core/base/error.h"
#include "muster/core/ops/detail/expect.h"

namespace muster {
namespace {

void expectInputs(std::string_view op, Combination combination, std::span<const Tensor> x, const Tensor& y) {
  require(!x.empty(), "{}: expected at least one input", op);
  require(combination != Combination::Subtract || x.size() == 2, "{}: subtract takes two inputs, got {}", op,
          x.size());
  for (const auto& input : x) detail::expectLike(op, "an input", input, x.front());
  detail::expectLike(op, "y", y, x.front());
}

}  // namespace

void combine(Combination combination, std::span<const Tensor> x, Tensor& y, Context& context) {
  expectInputs("combine", combination, x, y);
  if (y.device().isCpu()) return cpu::combine(combination, x, y, context);
  if constexpr (kCudaBuilt) return cuda::combine(combination, x, y, context);
  throw DeviceUnavailable("combine: this build has no CUDA");
}

void combineBackward(Combination combination, std::span<const Tensor> x, std::size_t input,
                     const Tensor& gradY, Tensor& gradX, Context& context) {
  expectInputs("combineBackward", combination, x, gradY);
  require(input < x.size(), "combineBackward: there is no input {}, only {}", input, x.size());
  detail::expectLike("combineBackward", "gradX", gradX, gradY);
  if (gradX.device().isCpu()) return cpu::combineBackward(combination, x, input, gradY, gradX, context);
  if constexpr (kCudaBuilt) return cuda::combineBackward(combination, x, input, gradY, gradX, context);
  throw DeviceUnavailable("combineBackward: this build has no CUDA");
}

void addTo(const Tensor& x, Tensor& y, Context& context) {
  const Tensor both[] = {y, x};
  combine(Combination::Add, both, y, context);
}

void scale(double factor, const Tensor& x, Tensor& y, Context& context) {
  detail::expectLike("scale", "x", x, x);
  detail::expectLike("scale", "y", y, x);
  if (y.device().isCpu()) return cpu::scale(factor, x, y, context);
  if constexpr (kCudaBuilt) return cuda::scale(factor, x, y, context);
  throw DeviceUnavailable("scale: this build has no CUDA");
}

void copyRange(const Tensor& x, std::int64_t from, Tensor& y, std::int64_t to, std::int64_t count, int axis,
               Context& context) {
  const auto fits = [&] {
    if (x.layout() != Layout::RowMajor || y.layout() != Layout::RowMajor || x.dtype() != DType::Float32 ||
        y.dtype() != DType::Float32 || x.shape().rank() != y.shape().rank() || axis < 0 ||
        axis >= x.shape().rank() || x.device() != y.device())
      return false;
    for (int i = 0; i < x.shape().rank(); ++i)
      if (i != axis && x.shape()[i] != y.shape()[i]) return false;
    return from >= 0 && to >= 0 && count >= 0 && from + count <= x.shape()[axis] &&
           to + count <= y.shape()[axis];
  };
  if (!fits())
    throw InvalidArgument(
        fmt::format("copyRange: elements {} to {} of dimension {} of {} do not fit at {} into {}", from,
                    from + count, axis, x.toString(), to, y.toString()));
  if (y.device().isCpu()) return cpu::copyRange(x, from, y, to, count, axis, context);
  if constexpr (kCudaBuilt) return cuda::copyRange(x, from, y, to, count, axis, context);
  throw DeviceUnavailable("copyRange: this build has no CUDA");
}

}  // namespace muster
