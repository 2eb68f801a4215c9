#include <algorithm>
#include <cmath>
#include <cstdint>

#include "muster/core/backend/cpu/contributors.h"
#include "muster/core/backend/cpu/first_bad.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/weighted_sums.h"
#include "muster/core/ops/detail/finite.h"
#include "muster/core/ops/step_to_mean.h"

// Works in blocks like a merge, see Note [A merge in blocks].

namespace muster::cpu {
namespace {

using muster::detail::isFinite;
using muster::detail::MagnitudeBits;

constexpr std::int64_t kBlock = 256;      // elements, which stay in the L1 cache
constexpr std::int64_t kGrain = 1 << 14;  // minimum elements per thread

/// Elements of a step to the mean, before and after it.
template <typename T>
struct StepBlock {
  const double* mean;
  const T *copyBefore, *movesBefore;
  T *copy, *moves, *replicas;
};

/// Uses the loops of a linear combination, so that results have the bits of separate linear combinations even
/// if the compiler contracts multiplications and additions. @return the largest magnitude of the results.
template <typename T>
MagnitudeBits<T> stepOfBlock(const StepBlock<T>& block, const StepToMean& step, std::int64_t n) {
  alignas(64) double values[kBlock];
  double* const sums = values;
  const double* const before = values;
  const auto rounded = [&](T* out, const T* last, double factor) {
    return dispatch<addLast<false, T, T>>(out, before, last, factor, n);
  };
  if (!step.moves.defined()) {
    if (step.rate == 1) return dispatch<addLast<true, T, double>>(block.copy, before, block.mean, 1.0, n);
    dispatch<multiply<double>>(sums, block.mean, step.rate, n);
    return rounded(block.copy, block.copyBefore, 1 - step.rate);
  }
  if (step.decay != 0) {
    dispatch<multiply<T>>(sums, block.movesBefore, step.decay, n);
    dispatch<multiplyAdd<double>>(sums, block.mean, step.rate, n);
  } else {
    dispatch<multiply<double>>(sums, block.mean, step.rate, n);
  }
  const T* const moved = block.moves;
  auto largest = rounded(block.moves, block.copyBefore, -step.rate);
  dispatch<multiply<T>>(sums, block.copyBefore, 1.0, n);
  largest = std::max(largest, rounded(block.copy, moved, 1.0));
  if (step.ahead == 0) return largest;
  dispatch<multiply<T>>(sums, static_cast<const T*>(block.copy), 1.0, n);
  return std::max(largest, rounded(block.replicas, moved, step.ahead));
}

template <typename T>
void step(std::span<const Tensor> replicas, const Contributors& contributors, const Tensor& mergedCopy,
          const StepToMean& step, std::int64_t begin, std::int64_t end, FirstBad& bad) {
  alignas(64) double mean[kBlock];
  alignas(64) T copy[kBlock], moves[kBlock], ahead[kBlock];
  const T* const result = step.moves.defined() && step.ahead != 0 ? ahead : copy;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = std::min(kBlock, end - at);
    const auto block = [&](const Tensor& t) { return t.data<T>() + at; };
    for (std::size_t w = contributors.first; w <= contributors.last; ++w)
      if (w == contributors.first)
        dispatch<multiply<T>>(&mean[0], block(replicas[w]), contributors.share(w), n);
      else if (contributors.weights[w] != 0)
        dispatch<multiplyAdd<T>>(&mean[0], block(replicas[w]), contributors.share(w), n);
    T* const movesThere = step.moves.defined() ? block(step.moves) : nullptr;
    const auto largest = stepOfBlock<T>({mean, block(mergedCopy), movesThere, copy, moves, ahead}, step, n);
    if (!isFinite<T>(largest)) {
      std::int64_t i = 0;
      while (std::isfinite(copy[i]) && (!movesThere || std::isfinite(moves[i])) && std::isfinite(result[i]))
        ++i;
      bad.note(at + i);
      continue;
    }
    if (movesThere) dispatch<copyBlock<T>>(movesThere, static_cast<const T*>(moves), n);
    dispatch<copyBlock<T>>(block(mergedCopy), static_cast<const T*>(copy), n);
    for (const Tensor& replica : replicas) dispatch<copyBlock<T>>(block(replica), result, n);
  }
}

}  // namespace

void stepToMean(std::span<const Tensor> replicas, std::span<const double> weights, const Tensor& mergedCopy,
                const StepToMean& how, std::int64_t begin, std::int64_t end, Context& context) {
  const Contributors contributors(weights);
  const auto stepOf = replicas[0].dtype() == DType::Float64 ? step<double> : step<float>;
  FirstBad bad;
  parallelFor(context, end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
    stepOf(replicas, contributors, mergedCopy, how, begin + from, begin + to, bad);
  });
  bad.check("stepToMean");
}

}  // namespace muster::cpu
