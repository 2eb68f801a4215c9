#pragma once

#include <algorithm>
#include <cmath>
#include <variant>

#include "muster/core/ops/detail/host_device.h"

// The update of one element. Each rule is written once, for every backend.

namespace muster::update {

/// The numbers of one step, which an update reads from memory; a recorded one reads them at each launch.
struct StepNumbers {
  double learningRate = 0;
  double gradientScale = 1;  ///< factor of gradients
  double rule[2] = {};       ///< written by the rule's `numbers`
};

/// The settings of one range, the same for each of its elements.
struct Terms {
  float scale, clipValue, l1, l2, learningRate;
  float decay;  // learningRate * weightDecay
};

/// The gradient after clipping and regularisation. The comparisons keep NaN: a broken gradient must show in
/// the score.
MUSTER_HOST_DEVICE float regularised(float g, float w, const Terms& t) {
  g *= t.scale;
  g = g > t.clipValue ? t.clipValue : g;
  g = g < -t.clipValue ? -t.clipValue : g;
  const float subgradient = w > 0 ? t.l1 : (w < 0 ? -t.l1 : 0.0f);
  return g + subgradient + t.l2 * w;
}

/// Upper bounds of the magnitudes that a rule computes in one step.
struct Bounds {
  double states = 0;  ///< after the step
  double step = 0;  ///< the parameter's change, and each number it is computed from, at a learning rate of 1
};

// A rule keeps `kStates` states for each parameter, at most two. `step` takes g, the regularised gradient,
// and lr, the learning rate; it updates the states and returns what is subtracted from the parameter w.
// `bounds` takes upper bounds of the magnitudes of g and of the states before the step. Without it the CPU
// computes each update twice, the first time only to see whether all results are finite.
//
// Constructors take float64 and round once: 1 - 0.999f has a relative error of 1.3e-5. A rule with numbers
// that differ from step to step has two more functions: the host writes them with `numbers` (t: steps
// including this one), the backend passes them to `setNumbers`.

/// w -= lr g.
struct SgdRule {
  static constexpr int kStates = 0;
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float&, float&) const {
    return learningRate * g;
  }
  Bounds bounds(double g, double) const { return {.step = g}; }
};

/// v = momentum v + g;  w -= lr v. As in PyTorch: the learning rate is not part of the velocity. Source:
/// Polyak 1964.
struct MomentumRule {
  static constexpr int kStates = 1;
  explicit MomentumRule(double m) : momentum(static_cast<float>(m)) {}
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float& velocity, float&) const {
    velocity = momentum * velocity + g;
    return learningRate * velocity;
  }
  Bounds bounds(double g, double velocity) const {
    const double after = std::abs(static_cast<double>(momentum)) * velocity + g;
    return {after, after};
  }
  float momentum;
};

/// v = momentum v + g;  w -= lr (g + momentum v). The learning rate is not part of the velocity, as in
/// PyTorch (Sutskever et al. 2013, in the form of Bengio et al. 2013).
struct NesterovsRule {
  static constexpr int kStates = 1;
  explicit NesterovsRule(double m) : momentum(static_cast<float>(m)) {}
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float& velocity, float&) const {
    velocity = momentum * velocity + g;
    return learningRate * (g + momentum * velocity);
  }
  Bounds bounds(double g, double velocity) const {
    const double m = std::abs(static_cast<double>(momentum)), after = m * velocity + g;
    return {after, g + m * after};
  }
  float momentum;
};

/// m = beta1 m + (1-beta1) g;  v = beta2 v + (1-beta2) g^2;
/// w -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon). Source: Kingma and Ba 2015.
struct AdamRule {
  static constexpr int kStates = 2;
  AdamRule(double b1, double b2, double e)
      : betas{b1, b2},
        beta1(static_cast<float>(b1)),
        rest1(static_cast<float>(1 - b1)),
        beta2(static_cast<float>(b2)),
        rest2(static_cast<float>(1 - b2)),
        epsilon(static_cast<float>(e)) {}
  void numbers(double t, double* corrections) const {
    for (int i = 0; i < 2; ++i) corrections[i] = 1 / (1 - std::pow(betas[i], t));
  }
  MUSTER_HOST_DEVICE void setNumbers(const double* corrections) {
    correction1 = static_cast<float>(corrections[0]);
    correction2 = static_cast<float>(corrections[1]);
  }
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float& m, float& v) const {
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
    return learningRate * correction1 * m / (std::sqrt(v * correction2) + epsilon);
  }
  Bounds bounds(double g, double states) const {
    return {states + std::max(g, g * g), correction1 * (states + g) / std::min(1.0f, epsilon)};
  }
  double betas[2];
  float beta1, rest1, beta2, rest2, epsilon;  // rest: 1 - beta
  float correction1 = 1, correction2 = 1;     // 1 / (1 - beta^t)
};

/// s = decay s + (1-decay) g^2;  w -= lr g / (sqrt(s) + epsilon). Source: Tieleman and Hinton 2012.
struct RmsPropRule {
  static constexpr int kStates = 1;
  RmsPropRule(double d, double e)
      : decay(static_cast<float>(d)), rest(static_cast<float>(1 - d)), epsilon(static_cast<float>(e)) {}
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float& meanSquare, float&) const {
    meanSquare = decay * meanSquare + rest * g * g;
    return learningRate * g / (std::sqrt(meanSquare) + epsilon);
  }
  Bounds bounds(double g, double meanSquare) const {
    return {meanSquare + g * g, g / std::min(1.0f, epsilon)};
  }
  float decay, rest, epsilon;
};

/// s += g^2;  w -= lr g / (sqrt(s) + epsilon). Source: Duchi et al. 2011.
struct AdaGradRule {
  static constexpr int kStates = 1;
  explicit AdaGradRule(double e) : epsilon(static_cast<float>(e)) {}
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float& sumOfSquares, float&) const {
    sumOfSquares += g * g;
    return learningRate * g / (std::sqrt(sumOfSquares) + epsilon);
  }
  Bounds bounds(double g, double sumOfSquares) const {
    return {sumOfSquares + g * g, g / std::min(1.0f, epsilon)};
  }
  float epsilon;
};

/// w -= lr sign(beta1 m + (1-beta1) g);  m = beta2 m + (1-beta2) g. Source: Chen et al. 2023, "Symbolic
/// discovery of optimization algorithms", algorithm 2.
struct LionRule {
  static constexpr int kStates = 1;
  LionRule(double b1, double b2)
      : beta1(static_cast<float>(b1)),
        rest1(static_cast<float>(1 - b1)),
        beta2(static_cast<float>(b2)),
        rest2(static_cast<float>(1 - b2)) {}
  MUSTER_HOST_DEVICE float step(float g, float learningRate, float& m, float&) const {
    const float direction = beta1 * m + rest1 * g;
    m = beta2 * m + rest2 * g;
    const float sign = direction > 0 ? 1.0f : (direction < 0 ? -1.0f : direction);  // keeps 0 and NaN
    return learningRate * sign;
  }
  Bounds bounds(double g, double m) const { return {m + g, std::max(1.0, m + g)}; }
  float beta1, rest1, beta2, rest2;  // rest: 1 - beta
};

/// `rule` with the numbers of its step.
template <typename Rule>
MUSTER_HOST_DEVICE Rule atStep(Rule rule, const StepNumbers& step) {
  if constexpr (requires { rule.setNumbers(step.rule); }) rule.setNumbers(step.rule);
  return rule;
}

}  // namespace muster::update

namespace muster {

/// The rules that have kernels on every backend.
using UpdateRule = std::variant<update::SgdRule, update::NesterovsRule, update::AdamRule, update::RmsPropRule,
                                update::AdaGradRule, update::LionRule, update::MomentumRule>;

}  // namespace muster
