#include "muster/core/backend/cuda/kernels/update.h"

#include <cuda_runtime.h>

#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {
namespace {

/// A rule that changes nothing, to compute only the penalty.
struct NoRule {};

template <typename Rule>
inline constexpr int kStatesOf = Rule::kStates;
template <>
inline constexpr int kStatesOf<NoRule> = 0;

__device__ float4 load(const float* from, bool whole, std::int64_t left) {
  if (whole) return *reinterpret_cast<const float4*>(from);
  return {left > 0 ? from[0] : 0, left > 1 ? from[1] : 0, left > 2 ? from[2] : 0, left > 3 ? from[3] : 0};
}

__device__ void store(float* to, const float4& values, bool whole, std::int64_t left) {
  if (whole) {
    *reinterpret_cast<float4*>(to) = values;
    return;
  }
  if (left > 0) to[0] = values.x;
  if (left > 1) to[1] = values.y;
  if (left > 2) to[2] = values.z;
  if (left > 3) to[3] = values.w;
}

__device__ bool aligned(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % sizeof(float4) == 0;
}

/// Uses explicit rounding: the compiler could contract products and sums differently in each kernel, but
/// launchPenalty and launchUpdate must give the same bits.
__device__ double penaltyOf(float w, const DeviceRange& range) {
  const auto value = static_cast<double>(w);
  const double squared = __dmul_rn(0.5 * range.l2, __dmul_rn(value, value));
  return __fma_rn(range.l1, fabs(value), squared);
}

template <typename Rule>
__device__ void updateOne(float& w, float g, float& first, float& second, const Rule& rule,
                          const update::Terms& terms) {
  const float before = w;
  const float step = rule.step(update::regularised(g, before, terms), terms.learningRate, first, second);
  w = before - (step + terms.decay * before);
}

/// Four parameters and all other inputs of their update; all loads are issued before the first is used.
template <typename Rule>
struct Four {
  float4 w, g = {}, states[2] = {};
  std::int64_t at, left;
  bool whole;

  __device__ Four(const UpdateCall& call, std::int64_t begin, std::int64_t count)
      : at(begin), left(count), whole(count >= 4 && aligned(call.parameters + begin)) {
    constexpr bool updates = !std::is_same_v<Rule, NoRule>;
    if constexpr (updates) whole = whole && aligned(call.gradients + at);
#pragma unroll
    for (int s = 0; s < kStatesOf<Rule>; ++s) whole = whole && aligned(call.state[s] + at);
    w = load(call.parameters + at, whole, left);
    if constexpr (updates) g = load(call.gradients + at, whole, left);
#pragma unroll
    for (int s = 0; s < kStatesOf<Rule>; ++s) states[s] = load(call.state[s] + at, whole, left);
  }
};

template <typename Rule>
__device__ void updateFour(const UpdateCall& call, const DeviceRange& range, const Rule& rule,
                           Four<Rule>& four) {
  const auto learningRate = static_cast<float>(call.numbers->learningRate * range.learningScale);
  const auto scale =
      static_cast<float>(call.numbers->gradientScale * (call.clipScale ? *call.clipScale : 1.0));
  const update::Terms terms{scale,    call.clipValue, range.l1,
                            range.l2, learningRate,   learningRate * range.weightDecay};
  auto& [w, g, states, at, left, whole] = four;
  updateOne(w.x, g.x, states[0].x, states[1].x, rule, terms);
  updateOne(w.y, g.y, states[0].y, states[1].y, rule, terms);
  updateOne(w.z, g.z, states[0].z, states[1].z, rule, terms);
  updateOne(w.w, g.w, states[0].w, states[1].w, rule, terms);
#pragma unroll
  for (int s = 0; s < kStatesOf<Rule>; ++s) store(call.state[s] + at, states[s], whole, left);
  store(call.parameters + at, w, whole, left);
}

/// Number of values among the first `left` that are not finite.
__device__ int notFinite(const float4& values, std::int64_t left) {
  return (left > 0 && !isfinite(values.x)) + (left > 1 && !isfinite(values.y)) +
         (left > 2 && !isfinite(values.z)) + (left > 3 && !isfinite(values.w));
}

/// All threads of the grid get the same result. The loads are independent.
__device__ bool lossesAreGood(const UpdateCall& call) {
  bool good = true;
  for (std::int64_t i = 0; i < call.lossCount; ++i) {
    const double* const loss = call.losses + kNumbersOfLoss * i;
    const double sum = loss[0], weight = loss[1], badRow = loss[2];
    const bool bad = badRow >= 0;
    good = good & (isfinite(sum) != 0) & (weight >= 0) & !bad;
  }
  return good;
}

template <typename Rule>
__global__ void __launch_bounds__(kBlockThreads) updateKernel(UpdateCall call, Rule given) {
  // Load chunks ahead: the first together with the losses, each other during the work on its predecessor.
  std::int64_t chunk = blockIdx.x;
  Chunk next = chunk < call.chunkCount ? call.chunks[chunk] : Chunk{};
  const double badGradient = call.badGradient ? *call.badGradient : -1.0;
  const bool goodLosses = lossesAreGood(call);
  if (!goodLosses || badGradient >= 0) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      *call.penalty = goodLosses ? nan("") : 0;
      if (call.refused) *call.refused = 1;
    }
    return;
  }
  Rule rule = given;
  if constexpr (!std::is_same_v<Rule, NoRule>) rule = update::atStep(given, *call.numbers);
  double sums[2] = {0, 0};  // the penalty, and the number of non-finite values written
  while (chunk < call.chunkCount) {
    const Chunk part = next;
    chunk += gridDim.x;
    if (chunk < call.chunkCount) next = call.chunks[chunk];
    const DeviceRange range = call.ranges[part.range];
    const std::int64_t offset = 4 * static_cast<std::int64_t>(threadIdx.x), left = part.count - offset;
    if (left <= 0) continue;
    Four<Rule> four(call, part.begin + offset, left);
    const float4& w = four.w;
    if (range.l1 != 0 || range.l2 != 0)
      sums[0] +=
          (penaltyOf(w.x, range) + penaltyOf(w.y, range)) + (penaltyOf(w.z, range) + penaltyOf(w.w, range));
    if constexpr (!std::is_same_v<Rule, NoRule>) {
      updateFour(call, range, rule, four);
      sums[1] += notFinite(four.w, left);
#pragma unroll
      for (int s = 0; s < kStatesOf<Rule>; ++s) sums[1] += notFinite(four.states[s], left);
    }
  }
  if (sumOverGrid(sums, call.scratch, call.counter) && threadIdx.x == 0) {
    *call.penalty = sums[1] == 0 ? sums[0] : nan("");
    if (call.refused) *call.refused = sums[1] == 0 ? 0 : 1;
  }
}

constexpr unsigned long long kNoneBad = ~0ull;

/// Lowers `first` to the element at `index` if it is not finite.
__device__ void findBad(float value, std::int64_t index, unsigned long long& first) {
  const auto here = static_cast<unsigned long long>(index);
  if (!isfinite(value) && here < first) first = here;
}

__global__ void __launch_bounds__(kBlockThreads)
    normKernel(UpdateCall call, double clipNorm, double* result) {
  double sums[1] = {0};
  unsigned long long bad = kNoneBad;
  for (std::int64_t chunk = blockIdx.x; chunk < call.chunkCount; chunk += gridDim.x) {
    const Chunk part = call.chunks[chunk];
    const std::int64_t offset = 4 * static_cast<std::int64_t>(threadIdx.x), left = part.count - offset;
    if (left <= 0) continue;
    const float* at = call.gradients + part.begin + offset;
    const float4 g = load(at, left >= 4 && aligned(at), left);
    const double x = g.x, y = g.y, z = g.z, w = g.w;
    sums[0] += (x * x + y * y) + (z * z + w * w);
    const std::int64_t index = part.begin + offset;
    findBad(g.x, index, bad);  // elements that were not read are 0
    findBad(g.y, index + 1, bad);
    findBad(g.z, index + 2, bad);
    findBad(g.w, index + 3, bad);
  }
  // The minimum does not depend on the order. A block writes its index before it counts itself as finished.
  if (call.badGradient && bad != kNoneBad) atomicMin(call.firstBad, bad);
  if (!sumOverGrid(sums, call.scratch, call.counter) || threadIdx.x != 0) return;
  const double scale = call.numbers ? call.numbers->gradientScale : 1.0;
  const double squares = scale * scale * sums[0];
  const double norm = sqrt(squares);
  if (call.badGradient) {
    const unsigned long long first = atomicExch(call.firstBad, kNoneBad);
    *call.badGradient = first == kNoneBad ? -1.0 : static_cast<double>(first);
  }
  result[0] = squares;
  result[1] = norm > clipNorm ? clipNorm / norm : 1.0;
}

template <typename Rule>
cudaError_t launch(const UpdateCall& call, const Rule& rule, cudaStream_t stream) {
  updateKernel<<<blocksFor(call.chunkCount, 1), kBlockThreads, 0, stream>>>(call, rule);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launchUpdate(const UpdateCall& call, const UpdateRule& rule, cudaStream_t stream) {
  return std::visit([&](const auto& r) { return launch(call, r, stream); }, rule);
}

cudaError_t launchPenalty(const UpdateCall& call, cudaStream_t stream) {
  return launch(call, NoRule{}, stream);
}

cudaError_t launchSquaredNorm(const UpdateCall& call, double clipNorm, double* result, cudaStream_t stream) {
  normKernel<<<blocksFor(call.chunkCount, 1), kBlockThreads, 0, stream>>>(call, clipNorm, result);
  return cudaGetLastError();
}

}  // namespace muster::cuda
