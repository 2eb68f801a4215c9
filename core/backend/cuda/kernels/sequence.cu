#include "muster/core/backend/cuda/kernels/sequence.h"

#include <cfloat>

#include "muster/core/backend/cuda/kernels/for_each.cuh"
#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {
namespace {

__device__ bool isReal(const float* mask, std::int64_t place) {
  return !mask || mask[place] != 0.0f;
}

/// The last real step; -1 if no step is real.
__device__ std::int64_t lastReal(const SequenceCall& c, std::int64_t example) {
  std::int64_t t = c.steps - 1;
  while (t >= 0 && !isReal(c.mask, example * c.steps + t)) --t;
  return t;
}

std::int64_t elementsOf(const SequenceCall& c) {
  return c.batch * c.steps * c.features;
}

/// Calls f(i, width) for the elements of `rows` rows, as `forEachPiece`; no piece spans two rows.
template <typename F>
cudaError_t forEachOfRows(std::int64_t rows, std::int64_t features, const float* x, const float* y,
                          cudaStream_t stream, F f) {
  const bool whole = features % kPiece == 0 && holdPieces(x, y);
  return forEachPieceAndPlace(rows * features, rows * features, whole, stream, f);
}

__device__ float realCount(const SequenceCall& c, std::int64_t example) {
  std::int64_t count = c.steps;
  if (c.mask) {
    count = 0;
    for (std::int64_t t = 0; t < c.steps; ++t) count += c.mask[example * c.steps + t] != 0.0f;
  }
  return static_cast<float>(count);
}

}  // namespace

cudaError_t launchMaskSteps(const SequenceCall& c, const float* x, float* y, cudaStream_t stream) {
  const Extent features(c.features);
  const float* const mask = c.mask;
  return forEachOfRows(c.batch * c.steps, c.features, x, y, stream, [=] __device__(auto i, auto width) {
    Piece<float, width> values{};
    if (isReal(mask, i / features)) values = read<width>(x + i);
    write(y + i, values);
  });
}

cudaError_t launchLastStep(const SequenceCall& c, const float* x, float* y, cudaStream_t stream) {
  const Extent features(c.features), steps(c.steps);
  return forEachPlace(c.batch * c.features, elementsOf(c), stream, [=] __device__(auto i) {
    const auto n = i / features;
    const auto t = static_cast<decltype(i)>(lastReal(c, n));
    y[i] = t < 0 ? 0.0f : x[(n * steps + t) * features + i % features];
  });
}

cudaError_t launchLastStepBackward(const SequenceCall& c, const float* gradY, float* gradX,
                                   cudaStream_t stream) {
  const Extent features(c.features), steps(c.steps);
  return forEachPlace(c.batch * c.features, elementsOf(c), stream, [=] __device__(auto i) {
    using Index = decltype(i);
    const Index n = i / features, last = static_cast<Index>(lastReal(c, n));
    for (Index t = 0; t < steps.as<Index>(); ++t)
      gradX[(n * steps + t) * features + i % features] = t == last ? gradY[i] : 0.0f;
  });
}

cudaError_t launchMeanOverTime(const SequenceCall& c, const float* x, float* y, cudaStream_t stream) {
  const Extent features(c.features), steps(c.steps);
  return forEachPlace(c.batch * c.features, elementsOf(c), stream, [=] __device__(auto i) {
    using Index = decltype(i);
    const Index n = i / features;
    const float count = realCount(c, n);
    float sum = 0;
    for (Index t = 0; t < steps.as<Index>(); ++t)
      if (isReal(c.mask, n * steps + t)) sum += x[(n * steps + t) * features + i % features];
    y[i] = count > 0 ? sum / count : 0.0f;
  });
}

cudaError_t launchMeanOverTimeBackward(const SequenceCall& c, const float* gradY, float* gradX,
                                       cudaStream_t stream) {
  const Extent features(c.features), steps(c.steps);
  return forEachPlace(c.batch * c.features, elementsOf(c), stream, [=] __device__(auto i) {
    using Index = decltype(i);
    const Index n = i / features;
    const float share = gradY[i] / realCount(c, n);  // not used if no step is real
    for (Index t = 0; t < steps.as<Index>(); ++t)
      gradX[(n * steps + t) * features + i % features] = isReal(c.mask, n * steps + t) ? share : 0.0f;
  });
}

cudaError_t launchTimeFirst(const SequenceCall& c, const float* x, float* y, cudaStream_t stream) {
  const Extent features(c.features), steps(c.steps), batch(c.batch);
  const float* const mask = c.mask;
  return forEachOfRows(c.batch * c.steps, c.features, x, y, stream, [=] __device__(auto i, auto width) {
    const auto to = i / features, row = to % batch * steps + to / batch;
    Piece<float, width> values{};
    if (isReal(mask, row)) values = read<width>(x + (row * features + i % features));
    write(y + i, values);
  });
}

cudaError_t launchBatchFirst(const SequenceCall& c, const float* x, float* y, cudaStream_t stream) {
  const Extent features(c.features), steps(c.steps), batch(c.batch);
  const float* const mask = c.mask;
  return forEachOfRows(c.batch * c.steps, c.features, x, y, stream, [=] __device__(auto i, auto width) {
    const auto row = i / features, from = row % steps * batch + row / steps;
    Piece<float, width> values{};
    if (isReal(mask, row)) values = read<width>(x + (from * features + i % features));
    write(y + i, values);
  });
}

cudaError_t launchEmbedding(const EmbeddingCall& c, const float* table, float* y, cudaStream_t stream) {
  const Extent features(c.features);
  return forEachOfRows(c.count, c.features, table, y, stream, [=] __device__(auto i, auto width) {
    const auto place = i / features;
    Piece<float, width> values{};
    if (isReal(c.mask, place)) {
      const std::int64_t index = c.indices[place];
      if (index >= 0 && index < c.vocabulary) {
        values = read<width>(table + (index * c.features + i % features));  // 64-bit: a table may be large
      } else {
#pragma unroll
        for (int k = 0; k < width; ++k) values.at[k] = nanf("");
      }
    }
    write(y + i, values);
  });
}

cudaError_t launchLstmStep(const StepCall& c, float* gates, const float* cellBefore, float* cell,
                           const float* stateBefore, float* state, cudaStream_t stream) {
  const Extent units(c.units);
  return forEachPlace(c.batch * c.units, c.batch * c.units, stream, [=] __device__(auto at) {
    const std::int64_t n = at / units, u = at % units;
    if (!isReal(c.mask, n * c.steps + c.step)) {
      cell[at] = cellBefore[at];
      state[at] = stateBefore[at];
      return;
    }
    float* const mine = gates + n * 4 * c.units + u;
    const float i = sigmoid(mine[0]), f = sigmoid(mine[c.units]);
    const float g = tanhf(mine[2 * c.units]), o = sigmoid(mine[3 * c.units]);
    const float value = f * cellBefore[at] + i * g;
    mine[0] = i;
    mine[c.units] = f;
    mine[2 * c.units] = g;
    mine[3 * c.units] = o;
    cell[at] = value;
    state[at] = o * tanhf(value);
  });
}

cudaError_t launchGruStep(const StepCall& c, float* gates, const float* products, const float* bias,
                          float* candidate, const float* stateBefore, float* state, cudaStream_t stream) {
  const Extent units(c.units);
  return forEachPlace(c.batch * c.units, c.batch * c.units, stream, [=] __device__(auto at) {
    const std::int64_t n = at / units, u = at % units;
    if (!isReal(c.mask, n * c.steps + c.step)) {
      state[at] = stateBefore[at];
      return;
    }
    float* const mine = gates + n * 3 * c.units + u;
    const float* const by = products ? products + n * 3 * c.units + u : nullptr;
    const float r = sigmoid(mine[0] + (by ? by[0] : 0.0f));
    const float z = sigmoid(mine[c.units] + (by ? by[c.units] : 0.0f));
    const float q = (by ? by[2 * c.units] : 0.0f) + bias[u];
    const float value = tanhf(mine[2 * c.units] + r * q);
    mine[0] = r;
    mine[c.units] = z;
    mine[2 * c.units] = value;
    candidate[at] = q;
    state[at] = value + z * (stateBefore[at] - value);
  });
}

cudaError_t launchLstmStepBackward(const StepCall& c, const float* gates, const float* cellBefore,
                                   const float* cell, const float* gradY, float* gradState, float* gradCell,
                                   float* gradGates, cudaStream_t stream) {
  const Extent units(c.units);
  return forEachPlace(c.batch * c.units, c.batch * c.units, stream, [=] __device__(auto at) {
    const std::int64_t n = at / units, u = at % units, row = n * c.steps + c.step;
    float* const grad = gradGates + n * 4 * c.units + u;
    if (!isReal(c.mask, row)) {  // the output of padding is zero
      for (int gate = 0; gate < 4; ++gate) grad[gate * c.units] = 0;
      return;
    }
    const float* const mine = gates + n * 4 * c.units + u;
    const float i = mine[0], f = mine[c.units], g = mine[2 * c.units], o = mine[3 * c.units];
    const float t = tanhf(cell[at]);
    const float gradH = gradState[at] + (gradY ? gradY[row * c.units + u] : 0.0f);
    const float gradC = gradCell[at] + gradH * o * (1.0f - t * t);
    grad[0] = gradC * g * i * (1.0f - i);
    grad[c.units] = gradC * cellBefore[at] * f * (1.0f - f);
    grad[2 * c.units] = gradC * i * (1.0f - g * g);
    grad[3 * c.units] = gradH * t * o * (1.0f - o);
    gradCell[at] = gradC * f;
    gradState[at] = 0;
  });
}

cudaError_t launchGruStepBackward(const StepCall& c, const float* gates, const float* candidate,
                                  const float* stateBefore, const float* gradY, float* gradState,
                                  float* gradGates, float* gradProducts, cudaStream_t stream) {
  const Extent units(c.units);
  return forEachPlace(c.batch * c.units, c.batch * c.units, stream, [=] __device__(auto at) {
    const std::int64_t n = at / units, u = at % units, row = n * c.steps + c.step;
    float* const grad = gradGates + n * 3 * c.units + u;
    float* const product = gradProducts + n * 3 * c.units + u;
    if (!isReal(c.mask, row)) {  // the output of padding is zero
      for (int gate = 0; gate < 3; ++gate) grad[gate * c.units] = product[gate * c.units] = 0;
      return;
    }
    const float* const mine = gates + n * 3 * c.units + u;
    const float r = mine[0], z = mine[c.units], value = mine[2 * c.units];
    const float gradH = gradState[at] + (gradY ? gradY[row * c.units + u] : 0.0f);
    const float gradN = gradH * (1.0f - z) * (1.0f - value * value);
    grad[0] = product[0] = gradN * candidate[at] * r * (1.0f - r);
    grad[c.units] = product[c.units] = gradH * (stateBefore[at] - value) * z * (1.0f - z);
    grad[2 * c.units] = gradN;
    product[2 * c.units] = gradN * r;
    gradState[at] = gradH * z;
  });
}

namespace {

struct HeadSizes {
  Extent batch, steps, heads, width, parts;
  HeadSizes(const AttentionCall& c, std::int64_t p)
      : batch(c.batch), steps(c.steps), heads(c.heads), width(c.width), parts(p) {}
};

/// The index in [batch, steps, parts, heads, width] of element i of [parts, batch * heads, steps, width].
template <typename Index>
__device__ Index joinedPlace(const HeadSizes& s, Index i) {
  const Index row = i / s.width, heads = row / s.steps, samples = heads / s.heads;
  const Index t = row % s.steps, head = heads % s.heads;
  const Index n = samples % s.batch, part = samples / s.batch;
  return (((n * s.steps + t) * s.parts + part) * s.heads + head) * s.width + i % s.width;
}

__device__ const float* maskOf(const AttentionCall& c, std::int64_t row) {
  return c.mask ? c.mask + row / c.steps / c.heads * c.steps : nullptr;
}

}  // namespace

cudaError_t launchSplitHeads(const AttentionCall& c, std::int64_t parts, const float* x, float* y,
                             cudaStream_t stream) {
  const HeadSizes sizes(c, parts);
  return forEachOfRows(parts * c.batch * c.heads * c.steps, c.width, x, y, stream,
                       [=] __device__(auto i, auto width) {
                         const auto values = read<width>(x + joinedPlace(sizes, i));
                         write(y + i, values);
                       });
}

cudaError_t launchJoinHeads(const AttentionCall& c, std::int64_t parts, const float* x, float* y,
                            cudaStream_t stream) {
  const HeadSizes sizes(c, parts);
  return forEachOfRows(parts * c.batch * c.heads * c.steps, c.width, x, y, stream,
                       [=] __device__(auto i, auto width) {
                         const auto values = read<width>(x + i);
                         write(y + joinedPlace(sizes, i), values);
                       });
}

cudaError_t launchAttentionWeights(const AttentionCall& c, float* weights, cudaStream_t stream) {
  return forEachRow(c.batch * c.heads * c.steps, stream, [=] __device__(std::int64_t row, int lane) {
    float* const mine = weights + row * c.steps;
    const float* const mask = maskOf(c, row);
    const std::int64_t t = row % c.steps;
    const std::int64_t count = !isReal(mask, t) ? 0 : c.causal ? t + 1 : c.steps;
    float top = -FLT_MAX, sum = 0;
    for (std::int64_t key = lane; key < count; key += 32)
      if (isReal(mask, key)) top = fmaxf(top, mine[key]);
    top = warpMax(top);
    for (std::int64_t key = lane; key < c.steps; key += 32) {
      const bool seen = key < count && isReal(mask, key);
      const float value = seen ? expf((mine[key] - top) * c.scale) : 0.0f;
      mine[key] = value;
      sum += value;
    }
    sum = warpSum(sum);
    const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;  // all keys are masked
    for (std::int64_t key = lane; key < count; key += 32) mine[key] *= factor;
  });
}

cudaError_t launchAttentionWeightsBackward(const AttentionCall& c, const float* weights, float* grad,
                                           cudaStream_t stream) {
  return forEachRow(c.batch * c.heads * c.steps, stream, [=] __device__(std::int64_t row, int lane) {
    const float* const weight = weights + row * c.steps;
    float* const mine = grad + row * c.steps;
    float sum = 0;
    for (std::int64_t key = lane; key < c.steps; key += 32) sum += mine[key] * weight[key];
    sum = warpSum(sum);
    for (std::int64_t key = lane; key < c.steps; key += 32)
      mine[key] = weight[key] * (mine[key] - sum) * c.scale;
  });
}

}  // namespace muster::cuda
