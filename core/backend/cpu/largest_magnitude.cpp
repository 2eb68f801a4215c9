#include "muster/core/ops/largest_magnitude.h"

#include <bit>

#include "muster/core/backend/cpu/simd.h"
#include "muster/core/ops/detail/finite.h"

namespace muster::cpu {
namespace {

template <typename T>
double largestOf(const T* x, std::int64_t n) {
  return static_cast<double>(std::bit_cast<T>(dispatch<muster::detail::largestMagnitude<T>>(x, n)));
}

}  // namespace

double largestMagnitude(const Tensor& x, std::int64_t begin, std::int64_t end) {
  if (x.dtype() == DType::Float64) return largestOf<double>(x.data<double>() + begin, end - begin);
  return largestOf<float>(x.data<float>() + begin, end - begin);
}

}  // namespace muster::cpu
