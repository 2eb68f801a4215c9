#include "muster/core/backend/cuda/kernels/sequence.h"

#include <cfloat>

#include "muster/core/backend/cuda/kernels/for_each.cuh"
#include "muster/core/backend/cuda/kernels/reduce.cuh"

namespace muster::cuda {
namespace {

__device__ bool isReal(const float* mask, std::int64_t place) {
  return !mask || mask[place] != 0.0f;
}

/// -1 where no step is real.
__device__ std::int64_t lastReal(const SequenceCall& c, std::int64_t example) {
  std::int64_t t = c.steps - 1;
  while (t >= 0 && !isReal(c.mask, example * c.steps + t)) --t;
  return t;
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
  return forEach(c.batch * c.steps * c.features, stream,
                 [=] __device__(std::int64_t i) { y[i] = isReal(c.mask, i / c.features) ? x[i] : 0.0f; });
}

cudaError_t launchLastStep(const SequenceCall& c, const float* x, float* y, cudaStream_t stream) {
  return forEach(c.batch * c.features, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / c.features, t = lastReal(c, n);
    y[i] = t < 0 ? 0.0f : x[(n * c.steps + t) * c.features + i % c.features];
  });
}

cudaError_t launchLastStepBackward(const SequenceCall& c, const float* gradY, float* gradX,
                                   cudaStream_t stream) {
  return forEach(c.batch * c.features, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / c.features, last = lastReal(c, n);
    for (std::int64_t t = 0; t < c.steps; ++t)
      gradX[(n * c.steps + t) * c.features + i % c.features] = t == last ? gradY[i] : 0.0f;
  });
}

cudaError_t launchMeanOverTime(const SequenceCall& c, const float* x, float* y, cudaStream_t stream) {
  return forEach(c.batch * c.features, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / c.features;
    const float count = realCount(c, n);
    float sum = 0;
    for (std::int64_t t = 0; t < c.steps; ++t)
      if (isReal(c.mask, n * c.steps + t)) sum += x[(n * c.steps + t) * c.features + i % c.features];
    y[i] = count > 0 ? sum / count : 0.0f;
  });
}

cudaError_t launchMeanOverTimeBackward(const SequenceCall& c, const float* gradY, float* gradX,
                                       cudaStream_t stream) {
  return forEach(c.batch * c.features, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / c.features;
    const float share = gradY[i] / realCount(c, n);  // not used where no step is real
    for (std::int64_t t = 0; t < c.steps; ++t)
      gradX[(n * c.steps + t) * c.features + i % c.features] = isReal(c.mask, n * c.steps + t) ? share : 0.0f;
  });
}

cudaError_t launchTimeFirst(const SequenceCall& c, const float* x, float* y, cudaStream_t stream) {
  return forEach(c.batch * c.steps * c.features, stream, [=] __device__(std::int64_t i) {
    const std::int64_t n = i / c.features % c.batch, t = i / c.features / c.batch;
    const std::int64_t row = n * c.steps + t;
    y[i] = isReal(c.mask, row) ? x[row * c.features + i % c.features] : 0.0f;
  });
}

cudaError_t launchBatchFirst(const SequenceCall& c, const float* x, float* y, cudaStream_t stream) {
  return forEach(c.batch * c.steps * c.features, stream, [=] __device__(std::int64_t i) {
    const std::int64_t row = i / c.features, n = row / c.steps, t = row % c.steps;
    y[i] = isReal(c.mask, row) ? x[(t * c.batch + n) * c.features + i % c.features] : 0.0f;
  });
}

cudaError_t launchEmbedding(const EmbeddingCall& c, const float* table, float* y, cudaStream_t stream) {
  return forEach(c.count * c.features, stream, [=] __device__(std::int64_t i) {
    const std::int64_t place = i / c.features;
    if (!isReal(c.mask, place)) {
      y[i] = 0;
      return;
    }
    const std::int64_t index = c.indices[place];
    const bool known = index >= 0 && index < c.vocabulary;
    y[i] = known ? table[index * c.features + i % c.features] : nanf("");
  });
}

cudaError_t launchLstmStep(const StepCall& c, float* gates, const float* cellBefore, float* cell,
                           const float* stateBefore, float* state, cudaStream_t stream) {
  return forEach(c.batch * c.units, stream, [=] __device__(std::int64_t at) {
    const std::int64_t n = at / c.units;
    if (!isReal(c.mask, n * c.steps + c.step)) {
      cell[at] = cellBefore[at];
      state[at] = stateBefore[at];
      return;
    }
    float* const mine = gates + n * 4 * c.units + at % c.units;
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
  return forEach(c.batch * c.units, stream, [=] __device__(std::int64_t at) {
    const std::int64_t n = at / c.units, u = at % c.units;
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
  return forEach(c.batch * c.units, stream, [=] __device__(std::int64_t at) {
    const std::int64_t n = at / c.units, u = at % c.units, row = n * c.steps + c.step;
    float* const grad = gradGates + n * 4 * c.units + u;
    if (!isReal(c.mask, row)) {  // its output was zero, whatever the state
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
  return forEach(c.batch * c.units, stream, [=] __device__(std::int64_t at) {
    const std::int64_t n = at / c.units, u = at % c.units, row = n * c.steps + c.step;
    float* const grad = gradGates + n * 3 * c.units + u;
    float* const product = gradProducts + n * 3 * c.units + u;
    if (!isReal(c.mask, row)) {  // its output was zero, whatever the state
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

/// Where element i of [parts, batch * heads, steps, width] lies in [batch, steps, parts, heads, width].
__device__ std::int64_t joinedPlace(const AttentionCall& c, std::int64_t parts, std::int64_t i) {
  const std::int64_t feature = i % c.width, row = i / c.width;
  const std::int64_t t = row % c.steps, head = row / c.steps % c.heads;
  const std::int64_t n = row / c.steps / c.heads % c.batch, part = row / c.steps / c.heads / c.batch;
  return (((n * c.steps + t) * parts + part) * c.heads + head) * c.width + feature;
}

__device__ const float* maskOf(const AttentionCall& c, std::int64_t row) {
  return c.mask ? c.mask + row / c.steps / c.heads * c.steps : nullptr;
}

}  // namespace

cudaError_t launchSplitHeads(const AttentionCall& c, std::int64_t parts, const float* x, float* y,
                             cudaStream_t stream) {
  return forEach(parts * c.batch * c.heads * c.steps * c.width, stream,
                 [=] __device__(std::int64_t i) { y[i] = x[joinedPlace(c, parts, i)]; });
}

cudaError_t launchJoinHeads(const AttentionCall& c, std::int64_t parts, const float* x, float* y,
                            cudaStream_t stream) {
  return forEach(parts * c.batch * c.heads * c.steps * c.width, stream,
                 [=] __device__(std::int64_t i) { y[joinedPlace(c, parts, i)] = x[i]; });
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
    const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;  // none is seen
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
