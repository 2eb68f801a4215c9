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

// In blocks, as a merge: see Note [A merge in blocks].

namespace muster::cpu {
namespace {

using muster::detail::isFinite;
using muster::detail::magnitudeBits;
using muster::detail::MagnitudeBits;

constexpr std::int64_t kBlock = 256;      // elements, which stay in the L1 cache
constexpr std::int64_t kGrain = 1 << 14;  // least elements a thread

/// A multiply and an add, rounded once if the other loops' are: the compiler joins them where it can.
template <bool kFused>
[[gnu::always_inline]] inline double addProduct(double factor, double x, double sum) {
  if constexpr (kFused)
    return __builtin_fma(factor, x, sum);
  else
    return sum + factor * x;
}

/// Elements of a step to the mean, before and after it.
template <typename T>
struct StepBlock {
  const double* mean;
  const T *copyBefore, *movesBefore;
  T *copy, *moves, *replicas;
};

/// @return the largest magnitude of what it has computed.
template <bool kFused, bool kDecays, typename T>
[[gnu::always_inline]] inline MagnitudeBits<T> stepWithMoves(StepBlock<T> block, double rate, double decay,
                                                             double ahead, std::int64_t n) {
  const double* __restrict const mean = block.mean;
  const T* __restrict const copyBefore = block.copyBefore;
  const T* __restrict const movesBefore = block.movesBefore;
  T* __restrict const copy = block.copy;
  T* __restrict const moves = block.moves;
  T* __restrict const replicas = block.replicas;
  MagnitudeBits<T> largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double move = 0;
    if constexpr (kDecays)
      move = addProduct<kFused>(rate, mean[i], decay * movesBefore[i]);
    else
      move = rate * mean[i];
    const T moved = static_cast<T>(addProduct<kFused>(-rate, copyBefore[i], move));
    const T outer = static_cast<T>(static_cast<double>(copyBefore[i]) + static_cast<double>(moved));
    const T base = static_cast<T>(addProduct<kFused>(ahead, moved, outer));
    moves[i] = moved;
    copy[i] = outer;
    replicas[i] = base;
    largest = std::max(largest, magnitudeBits(moved));
    largest = std::max(largest, magnitudeBits(outer));
    largest = std::max(largest, magnitudeBits(base));
  }
  return largest;
}

template <bool kFused, typename T>
[[gnu::always_inline]] inline MagnitudeBits<T> stepWithoutMoves(StepBlock<T> block, double rate,
                                                                std::int64_t n) {
  const double* __restrict const mean = block.mean;
  const T* __restrict const copyBefore = block.copyBefore;
  T* __restrict const copy = block.copy;
  MagnitudeBits<T> largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (rate == 1)
      copy[i] = static_cast<T>(mean[i]);
    else
      copy[i] = static_cast<T>(addProduct<kFused>(1 - rate, copyBefore[i], rate * mean[i]));
    largest = std::max(largest, magnitudeBits(copy[i]));
  }
  return largest;
}

/// Whether this machine's loops multiply and add with one rounding.
bool fuses() {
#if defined(__FMA__) || defined(__aarch64__)
  return true;
#else
  return instructionSet() != InstructionSet::Baseline;
#endif
}

template <bool kFused, typename T>
MagnitudeBits<T> stepOfBlock(const StepBlock<T>& block, const StepToMean& step, std::int64_t n) {
  if (!step.moves.defined()) return dispatch<stepWithoutMoves<kFused, T>>(block, step.rate, n);
  return step.decay != 0
             ? dispatch<stepWithMoves<kFused, true, T>>(block, step.rate, step.decay, step.ahead, n)
             : dispatch<stepWithMoves<kFused, false, T>>(block, step.rate, step.decay, step.ahead, n);
}

template <typename T>
void step(std::span<const Tensor> replicas, const Contributors& contributors, const Tensor& mergedCopy,
          const StepToMean& step, std::int64_t begin, std::int64_t end, FirstBad& bad) {
  alignas(64) double mean[kBlock];
  alignas(64) T copy[kBlock], moves[kBlock], ahead[kBlock];
  const auto stepTo = fuses() ? stepOfBlock<true, T> : stepOfBlock<false, T>;
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
    const auto largest = stepTo({mean, block(mergedCopy), movesThere, copy, moves, ahead}, step, n);
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
