#pragma once

#include <cstdint>
#include <span>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// One term of a linear combination.
struct Term {
  double factor = 1;
  Tensor values;
};

/// out[i] = sum_t factor_t * values_t[i] for i in [begin, end): in float64, in the order of the terms,
/// rounded once to the type of `out`, which may be one of the terms. Terms of factor 0 are skipped, so their
/// values (NaN, too) do not count; one term of factor 1 is copied, bit for bit; without terms `out` is 0.
/// @param terms  float32 or float64, RowMajor, on the device and of the size of `out`; at most 40 on a
///               GPU.
/// @throws InvalidArgument if types or sizes do not fit. Several threads may each take a range. Enqueued on
/// GPUs; allocates nothing.
void linearCombination(std::span<const Term> terms, const Tensor& out, std::int64_t begin, std::int64_t end,
                       Context& context);

/// sum (a[i] - origin[i]) (b[i] - origin[i]) for i in [begin, end), in float64 and in a fixed order. `origin`
/// may be undefined: 0. On a GPU it waits for the result. @throws InvalidArgument as `linearCombination`.
double innerProduct(const Tensor& a, const Tensor& b, const Tensor& origin, std::int64_t begin,
                    std::int64_t end, Context& context);
/// sum (a[i] - b[i])^2, likewise.
double squaredDistance(const Tensor& a, const Tensor& b, std::int64_t begin, std::int64_t end,
                       Context& context);

namespace cpu {
void linearCombination(std::span<const Term> terms, const Tensor& out, std::int64_t begin, std::int64_t end,
                       Context& context);
double innerProduct(const Tensor& a, const Tensor& b, const Tensor& origin, std::int64_t begin,
                    std::int64_t end, Context& context);
}  // namespace cpu
namespace cuda {
void linearCombination(std::span<const Term> terms, const Tensor& out, std::int64_t begin, std::int64_t end,
                       Context& context);
double innerProduct(const Tensor& a, const Tensor& b, const Tensor& origin, std::int64_t begin,
                    std::int64_t end, Context& context);
}  // namespace cuda

}  // namespace muster
