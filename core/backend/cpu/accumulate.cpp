#include "muster/core/ops/accumulate.h"

#include <algorithm>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kBlock = 256;      // elements whose sums stay in the L1 cache
constexpr std::int64_t kGrain = 1 << 14;  // minimum elements per thread

/// The first input is stored, not added to 0, so the sum of negative zeros is a negative zero.
template <typename T>
[[gnu::always_inline]] inline void start(double* __restrict sums, const T* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] = x[i];
}

template <typename T>
[[gnu::always_inline]] inline void add(double* __restrict sums, const T* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += x[i];
}

template <typename T>
[[gnu::always_inline]] inline void finish(T* __restrict out, const double* __restrict sums, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(sums[i]);
}

/// A block is read completely before it is written, so `out` may be an input.
template <typename T>
void sumOfBlock(std::span<const Tensor> inputs, T* out, std::int64_t begin, std::int64_t n) {
  alignas(64) double sums[kBlock];
  dispatch<start<T>>(sums, static_cast<const T*>(inputs[0].data<T>() + begin), n);
  for (const Tensor& input : inputs.subspan(1))
    dispatch<add<T>>(sums, static_cast<const T*>(input.data<T>() + begin), n);
  dispatch<finish<T>>(out + begin, static_cast<const double*>(sums), n);
}

template <typename T>
void sumOf(std::span<const Tensor> inputs, Tensor& out, Context& context) {
  T* const target = out.data<T>();
  parallelFor(context, out.storage(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += kBlock)
      sumOfBlock(inputs, target, at, std::min(kBlock, end - at));
  });
}

}  // namespace

void sum(std::span<const Tensor> inputs, Tensor& out, Context& context) {
  if (inputs.size() == 1) return copy(inputs[0], out, context);
  if (out.dtype() == DType::Float64) return sumOf<double>(inputs, out, context);
  sumOf<float>(inputs, out, context);
}

}  // namespace muster::cpu
