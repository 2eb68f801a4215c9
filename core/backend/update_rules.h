#pragma once

#include <cmath>

#include "muster/core/backend/host_device.h"

// What an update does with one element, for every backend.

namespace muster::update {

/// What one range asks of each of its elements.
struct Terms {
  float scale, clipValue, l1, l2, learningRate;
  float decay;  // learningRate * weightDecay
};

/// The gradient after clipping and regularisation. The comparisons let NaN through: a broken gradient must
/// show in the score, not be clipped to a number.
MUSTER_HOST_DEVICE float regularised(float g, float w, const Terms& t) {
  g *= t.scale;
  g = g > t.clipValue ? t.clipValue : g;
  g = g < -t.clipValue ? -t.clipValue : g;
  const float subgradient = w > 0 ? t.l1 : (w < 0 ? -t.l1 : 0.0f);
  return g + subgradient + t.l2 * w;
}

// A rule turns a gradient into what the parameter loses, and moves its state on.

struct SgdRule {
  static constexpr int kStates = 0;
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float&, float&) const {
    return learningRate * g;
  }
};

struct NesterovsRule {
  static constexpr int kStates = 1;
  float momentum;
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float& velocity, float&) const {
    velocity = momentum * velocity + g;
    return learningRate * (g + momentum * velocity);
  }
};

struct AdamRule {
  static constexpr int kStates = 2;
  float beta1, rest1, beta2, rest2;  // rest: 1 - beta
  float correction1, correction2;    // 1 / (1 - beta^t)
  float epsilon;
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float& m, float& v) const {
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
    return learningRate * correction1 * m / (std::sqrt(v * correction2) + epsilon);
  }
};

struct RmsPropRule {
  static constexpr int kStates = 1;
  float decay, rest, epsilon;
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float& meanSquare, float&) const {
    meanSquare = decay * meanSquare + rest * g * g;
    return learningRate * g / (std::sqrt(meanSquare) + epsilon);
  }
};

struct AdaGradRule {
  static constexpr int kStates = 1;
  float epsilon;
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float& sumOfSquares, float&) const {
    sumOfSquares += g * g;
    return learningRate * g / (std::sqrt(sumOfSquares) + epsilon);
  }
};

}  // namespace muster::update
