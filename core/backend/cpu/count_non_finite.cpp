#include "muster/core/ops/count_non_finite.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace muster::cpu {
namespace {

template <typename T>
double countIn(std::span<const T> values) {
  return static_cast<double>(std::ranges::count_if(values, [](T value) { return !std::isfinite(value); }));
}

}  // namespace

void countNonFinite(const Tensor& x, Tensor& count) {
  *count.data<double>() +=
      x.dtype() == DType::Float64 ? countIn<double>(x.span<double>()) : countIn<float>(x.span<float>());
}

}  // namespace muster::cpu
