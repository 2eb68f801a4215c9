#pragma once

#include <cstdint>

#include "muster/core/backend/cuda/kernels/launch.h"

namespace muster::cuda {

/// Sequences [batch, steps, features]; a step with mask 0 is padding. mask [batch, steps] may be null.
struct SequenceCall {
  std::int64_t batch, steps, features;
  const float* mask;
};
cudaError_t launchMaskSteps(const SequenceCall& call, const float* x, float* y, cudaStream_t stream);
cudaError_t launchLastStep(const SequenceCall& call, const float* x, float* y, cudaStream_t stream);
cudaError_t launchLastStepBackward(const SequenceCall& call, const float* gradY, float* gradX,
                                   cudaStream_t stream);
cudaError_t launchMeanOverTime(const SequenceCall& call, const float* x, float* y, cudaStream_t stream);
cudaError_t launchMeanOverTimeBackward(const SequenceCall& call, const float* gradY, float* gradX,
                                       cudaStream_t stream);
/// y [steps, batch, features] = x, zero for padding.
cudaError_t launchTimeFirst(const SequenceCall& call, const float* x, float* y, cudaStream_t stream);
/// The reverse, y [batch, steps, features].
cudaError_t launchBatchFirst(const SequenceCall& call, const float* x, float* y, cudaStream_t stream);

struct EmbeddingCall {
  std::int64_t count, vocabulary, features;
  const std::int64_t* indices;  // [count]
  const float* mask;            // [count]; null: all are real
};
/// An index outside the table gives a row of NaN.
cudaError_t launchEmbedding(const EmbeddingCall& call, const float* table, float* y, cudaStream_t stream);

/// One step of a recurrent layer: rows [batch, units] of states, [batch, gates * units] of gates. Padded
/// examples keep their states.
struct StepCall {
  std::int64_t batch, units, steps, step;
  const float* mask;  // [batch, steps]; null: all are real
};
/// gates: i, f, g, o. In: before the gate functions; out: after them.
cudaError_t launchLstmStep(const StepCall& call, float* gates, const float* cellBefore, float* cell,
                           const float* stateBefore, float* state, cudaStream_t stream);
/// gates: r, z, n. In: the input's part; out: after the gate functions. products: Ur h, Uz h, Un h; null if h
/// is zero. candidate: out, Un h + un.
cudaError_t launchGruStep(const StepCall& call, float* gates, const float* products, const float* bias,
                          float* candidate, const float* stateBefore, float* state, cudaStream_t stream);
/// gradState, gradCell. In: gradients of the values after this step; out: of those before it, without the
/// part through the product with the gates. gradY: [batch, steps, units]; null if only the last state is
/// used.
cudaError_t launchLstmStepBackward(const StepCall& call, const float* gates, const float* cellBefore,
                                   const float* cell, const float* gradY, float* gradState, float* gradCell,
                                   float* gradGates, cudaStream_t stream);
/// gradGates: gradients of the input's part of r, z, n; gradProducts: of the state's part.
cudaError_t launchGruStepBackward(const StepCall& call, const float* gates, const float* candidate,
                                  const float* stateBefore, const float* gradY, float* gradState,
                                  float* gradGates, float* gradProducts, cudaStream_t stream);

struct AttentionCall {
  std::int64_t batch, steps, heads, width;  // width: features of a head
  bool causal;
  float scale;
  const float* mask;  // [batch, steps]; null: all are real
};
/// Copies x [batch, steps, parts, heads, width] to y [parts, batch * heads, steps, width].
cudaError_t launchSplitHeads(const AttentionCall& call, std::int64_t parts, const float* x, float* y,
                             cudaStream_t stream);
cudaError_t launchJoinHeads(const AttentionCall& call, std::int64_t parts, const float* x, float* y,
                            cudaStream_t stream);
/// Turns products, in place, into the softmax over the keys that a step may attend to; zero elsewhere.
/// @param weights  [batch * heads, steps, steps].
cudaError_t launchAttentionWeights(const AttentionCall& call, float* weights, cudaStream_t stream);
/// Turns the gradient of the weights, in place, into the gradient of the products.
cudaError_t launchAttentionWeightsBackward(const AttentionCall& call, const float* weights, float* grad,
                                           cudaStream_t stream);

}  // namespace muster::cuda
