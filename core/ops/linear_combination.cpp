#include "muster/core/ops/linear_combination.h"

#include <cmath>
#include <string_view>

#include "muster/built.h"
#include "muster/core/base/error.h"

namespace muster {
namespace {

void requireTerm(const Tensor& values, const Tensor& out, std::string_view op) {
  const bool real = values.dtype() == DType::Float32 || values.dtype() == DType::Float64;
  if (values.defined() && real && values.layout() == Layout::RowMajor &&
      values.elements() == out.elements() && values.device() == out.device())
    return;
  throw InvalidArgument(
      fmt::format("{}: expected float32 or float64, row-major, with {} elements on {}, got {}", op,
                  out.elements(), out.device().toString(), values.toString()));
}

void checkRange(std::int64_t begin, std::int64_t end, const Tensor& out, std::string_view op) {
  require(0 <= begin && begin <= end && end <= out.elements(), "{}: [{}, {}) is not within {} elements", op,
          begin, end, out.elements());
}

}  // namespace

void linearCombination(std::span<const Term> terms, const Tensor& out, std::int64_t begin, std::int64_t end,
                       Context& context) {
  requireTerm(out, out, "linearCombination");
  for (const Term& term : terms) {
    requireTerm(term.values, out, "linearCombination");
    require(std::isfinite(term.factor), "linearCombination: a factor is {}", term.factor);
  }
  checkRange(begin, end, out, "linearCombination");
  if (out.device().isCpu()) return cpu::linearCombination(terms, out, begin, end, context);
  if constexpr (kCudaBuilt) return cuda::linearCombination(terms, out, begin, end, context);
  throw DeviceUnavailable("linearCombination: this build has no CUDA");
}

double innerProduct(const Tensor& a, const Tensor& b, const Tensor& origin, std::int64_t begin,
                    std::int64_t end, Context& context) {
  requireTerm(a, a, "innerProduct");
  requireTerm(b, a, "innerProduct");
  if (origin.defined()) requireTerm(origin, a, "innerProduct");
  checkRange(begin, end, a, "innerProduct");
  if (a.device().isCpu()) return cpu::innerProduct(a, b, origin, begin, end, context);
  if constexpr (kCudaBuilt) return cuda::innerProduct(a, b, origin, begin, end, context);
  throw DeviceUnavailable("innerProduct: this build has no CUDA");
}

double squaredDistance(const Tensor& a, const Tensor& b, std::int64_t begin, std::int64_t end,
                       Context& context) {
  return innerProduct(a, a, b, begin, end, context);
}

}  // namespace muster
