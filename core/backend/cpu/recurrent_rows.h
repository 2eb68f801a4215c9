#pragma once

#include <cstdint>

#include "muster/core/backend/cpu/exp.h"
#include "muster/core/backend/cpu/simd.h"

// Loops over one row of a recurrent layer (one example at one step), for `dispatch`. RecurrentCell has the
// formulas. Rows do not overlap.

namespace muster::cpu {

/// @param gates  i, f, g, o. In: before the gate functions; out: after them.
[[gnu::always_inline]] inline void lstmForwardRow(float* gates, const float* cellBefore, float* cell,
                                                  float* state, std::int64_t units) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t u = 0; u < units; ++u) {
    const float i = sigmoid(gates[u]), f = sigmoid(gates[units + u]);
    const float g = tanh(gates[2 * units + u]), o = sigmoid(gates[3 * units + u]);
    const float c = f * cellBefore[u] + i * g;
    gates[u] = i;
    gates[units + u] = f;
    gates[2 * units + u] = g;
    gates[3 * units + u] = o;
    cell[u] = c;
    state[u] = o * tanh(c);
  }
}

/// @param gradState  in: gradient of the state after this step; out: 0, because all flows through the gates.
/// @param gradCell   in: gradient of the cell after this step; out: of the cell before it.
/// @param gradGates  out: gradients of the gate functions' inputs.
[[gnu::always_inline]] inline void lstmBackwardRow(const float* gates, const float* cellBefore,
                                                   const float* cell, float* gradState, float* gradCell,
                                                   float* gradGates, std::int64_t units) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t u = 0; u < units; ++u) {
    const float i = gates[u], f = gates[units + u], g = gates[2 * units + u], o = gates[3 * units + u];
    const float t = tanh(cell[u]);
    const float gradH = gradState[u];
    const float gradC = gradCell[u] + gradH * o * (1.0f - t * t);
    gradGates[u] = gradC * g * i * (1.0f - i);
    gradGates[units + u] = gradC * cellBefore[u] * f * (1.0f - f);
    gradGates[2 * units + u] = gradC * i * (1.0f - g * g);
    gradGates[3 * units + u] = gradH * t * o * (1.0f - o);
    gradCell[u] = gradC * f;
    gradState[u] = 0.0f;
  }
}

/// @param gates      r, z, n. In: the input's part; out: after the gate functions.
/// @param products   Ur h, Uz h, Un h.
/// @param candidate  out: Un h + un, before the multiplication by r.
[[gnu::always_inline]] inline void gruForwardRow(float* gates, const float* products, const float* bias,
                                                 float* candidate, const float* stateBefore, float* state,
                                                 std::int64_t units) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t u = 0; u < units; ++u) {
    const float r = sigmoid(gates[u] + products[u]);
    const float z = sigmoid(gates[units + u] + products[units + u]);
    const float q = products[2 * units + u] + bias[u];
    const float n = tanh(gates[2 * units + u] + r * q);
    gates[u] = r;
    gates[units + u] = z;
    gates[2 * units + u] = n;
    candidate[u] = q;
    state[u] = n + z * (stateBefore[u] - n);
  }
}

/// @param gradState      in: gradient of the state after this step; out: the part that bypasses the gates.
/// @param gradGates      out: gradients of the input's part of the gate functions' inputs.
/// @param gradCandidate  out: gradient of the candidate.
[[gnu::always_inline]] inline void gruBackwardRow(const float* gates, const float* candidate,
                                                  const float* stateBefore, float* gradState,
                                                  float* gradGates, float* gradCandidate,
                                                  std::int64_t units) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (std::int64_t u = 0; u < units; ++u) {
    const float r = gates[u], z = gates[units + u], n = gates[2 * units + u];
    const float gradH = gradState[u];
    const float gradN = gradH * (1.0f - z) * (1.0f - n * n);
    gradGates[u] = gradN * candidate[u] * r * (1.0f - r);
    gradGates[units + u] = gradH * (stateBefore[u] - n) * z * (1.0f - z);
    gradGates[2 * units + u] = gradN;
    gradCandidate[u] = gradN * r;
    gradState[u] = gradH * z;
  }
}

}  // namespace muster::cpu
