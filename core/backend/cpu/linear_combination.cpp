#include "muster/core/ops/linear_combination.h"

#include <algorithm>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/weighted_sums.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kBlock = 256;      // elements whose float64 sums stay in the L1 cache
constexpr std::int64_t kGrain = 1 << 14;  // least elements a thread

template <typename T>
[[gnu::always_inline]] inline void round(T* __restrict out, const double* __restrict sums, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(sums[i]);
}

void addTerm(const Term& term, bool first, double* sums, std::int64_t at, std::int64_t n) {
  if (term.values.dtype() == DType::Float64) {
    const auto* const x = term.values.data<double>() + at;
    first ? dispatch<multiply<double>>(sums, x, term.factor, n)
          : dispatch<multiplyAdd<double>>(sums, x, term.factor, n);
  } else {
    const auto* const x = term.values.data<float>() + at;
    first ? dispatch<multiply<float>>(sums, x, term.factor, n)
          : dispatch<multiplyAdd<float>>(sums, x, term.factor, n);
  }
}

/// The element as float64.
double valueAt(const Tensor& tensor, std::int64_t i) {
  return tensor.dtype() == DType::Float64 ? tensor.data<double>()[i]
                                          : static_cast<double>(tensor.data<float>()[i]);
}

}  // namespace

void linearCombination(std::span<const Term> terms, const Tensor& out, std::int64_t begin, std::int64_t end,
                       Context& context) {
  parallelFor(context, end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
    alignas(64) double sums[kBlock];
    for (std::int64_t at = begin + from; at < begin + to; at += kBlock) {
      const std::int64_t n = std::min(kBlock, begin + to - at);
      bool first = true;
      for (const Term& term : terms) {
        if (term.factor == 0) continue;
        addTerm(term, first, sums, at, n);
        first = false;
      }
      if (first) std::fill_n(sums, n, 0.0);
      if (out.dtype() == DType::Float64)
        dispatch<round<double>>(out.data<double>() + at, static_cast<const double*>(sums), n);
      else
        dispatch<round<float>>(out.data<float>() + at, static_cast<const double*>(sums), n);
    }
  });
}

double innerProduct(const Tensor& a, const Tensor& b, const Tensor& origin, std::int64_t begin,
                    std::int64_t end, Context&) {
  double sum = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const double from = origin.defined() ? valueAt(origin, i) : 0.0;
    sum += (valueAt(a, i) - from) * (valueAt(b, i) - from);
  }
  return sum;
}

}  // namespace muster::cpu
