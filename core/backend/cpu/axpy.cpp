#include "muster/core/ops/axpy.h"

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // minimum elements per thread

template <typename T>
[[gnu::always_inline]] inline void multiplyAdd(double a, const T* x, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(y[i] + a * x[i]);
}

template <typename T>
void axpyOf(double a, const Tensor& x, Tensor& y, Context& context) {
  const T* from = x.data<T>();
  T* to = y.data<T>();
  parallelFor(context, y.storage(), kGrain, [=](std::int64_t begin, std::int64_t end) {
    dispatch<multiplyAdd<T>>(a, from + begin, to + begin, end - begin);
  });
}

}  // namespace

void axpy(double a, const Tensor& x, Tensor& y, Context& context) {
  if (y.dtype() == DType::Float64) return axpyOf<double>(a, x, y, context);
  axpyOf<float>(a, x, y, context);
}

}  // namespace muster::cpu
