#pragma once

#include <tuple>

#include "muster/core/optim/updater.h"

// The library's updaters: the options of the rules in `core/ops/update_rules.h`, which has the formulas.

namespace muster {

namespace detail {
void requireFraction(std::string_view type, std::string_view option, double value);
/// The step divides by a root plus epsilon in float32, so epsilon must not vanish there.
void requireEpsilon(std::string_view type, double epsilon);
void requireNotNegative(std::string_view type, std::string_view option, double value);
}  // namespace detail

/// Stochastic gradient descent: w -= lr g; with `momentum` as PyTorch's SGD, v = momentum v + g and w -= lr v
/// (`MomentumRule`). Nesterov's momentum is `Nesterovs`.
struct Sgd {
  static constexpr std::string_view kType = "sgd";
  Schedule learningRate = 0.1;
  double momentum = 0;  ///< from 0 to below 1; 0: no velocity is kept

  std::vector<std::string> stateNames() const {
    return momentum == 0 ? std::vector<std::string>{} : std::vector<std::string>{"velocity"};
  }
  UpdateSettings settings() const {
    if (momentum == 0) return {};
    return {.rule = update::MomentumRule(momentum)};
  }
  void fields(Fields& f) {
    f.field("momentum", momentum, "share of the velocity that is kept, from 0 to below 1; 0: no velocity",
            "[0, 1)");
  }
  void validate() const { detail::requireFraction(kType, "momentum", momentum); }
};

/// SGD with Nesterov momentum, by default as PyTorch's: the learning rate is not part of the velocity
/// (`NesterovsRule`).
struct Nesterovs {
  static constexpr std::string_view kType = "nesterovs";
  Schedule learningRate = 0.1;
  double momentum = 0.9;
  /// The velocity is made of steps instead of gradients, so that a change of the learning rate acts on later
  /// gradients only, as in Deeplearning4j (`NesterovsOfStepsRule`).
  bool rateInVelocity = false;

  std::vector<std::string> stateNames() const { return {"velocity"}; }
  UpdateSettings settings() const {
    if (rateInVelocity) return {.rule = update::NesterovsOfStepsRule(momentum)};
    return {.rule = update::NesterovsRule(momentum)};
  }
  void fields(Fields& f) {
    f.field("momentum", momentum, "share of the velocity that is kept, from 0 to below 1", "[0, 1)");
    f.field("rateInVelocity", rateInVelocity,
            "the velocity is made of steps, as in Deeplearning4j, not of gradients, as in PyTorch");
  }
  void validate() const { detail::requireFraction(kType, "momentum", momentum); }
};

/// Adam (`AdamRule`).
struct Adam {
  static constexpr std::string_view kType = "adam";
  Schedule learningRate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  /// Adds epsilon to the root before it is corrected, as Deeplearning4j and TensorFlow do; PyTorch after it.
  bool epsilonHat = false;

  std::vector<std::string> stateNames() const { return {"firstMoment", "secondMoment"}; }
  UpdateSettings settings() const { return {.rule = update::AdamRule(beta1, beta2, epsilon, epsilonHat)}; }
  void fields(Fields& f) {
    f.field("beta1", beta1, "decay of the first moment, from 0 to below 1", "[0, 1)");
    f.field("beta2", beta2, "decay of the second moment, from 0 to below 1", "[0, 1)");
    f.field("epsilon", epsilon, "added to the root of the second moment", "(0, )");
    f.field("epsilonHat", epsilonHat,
            "adds epsilon before the correction of the moments, as Deeplearning4j and TensorFlow do; PyTorch "
            "after it");
  }
  void validate() const {
    detail::requireFraction(kType, "beta1", beta1);
    detail::requireFraction(kType, "beta2", beta2);
    detail::requireEpsilon(kType, epsilon);
  }
};

/// Adam with its own decoupled weight decay, 0.01 by default. The decay of the model's options is added.
struct AdamW {
  static constexpr std::string_view kType = "adamw";
  Schedule learningRate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool epsilonHat = false;  ///< as in Adam
  double weightDecay = 0.01;

  std::vector<std::string> stateNames() const { return {"firstMoment", "secondMoment"}; }
  UpdateSettings settings() const {
    return {.rule = update::AdamRule(beta1, beta2, epsilon, epsilonHat), .weightDecay = weightDecay};
  }
  void fields(Fields& f) {
    f.field("beta1", beta1, "decay of the first moment, from 0 to below 1", "[0, 1)");
    f.field("beta2", beta2, "decay of the second moment, from 0 to below 1", "[0, 1)");
    f.field("epsilon", epsilon, "added to the root of the second moment", "(0, )");
    f.field("epsilonHat", epsilonHat,
            "adds epsilon before the correction of the moments, as Deeplearning4j and TensorFlow do; PyTorch "
            "after it");
    f.field("weightDecay", weightDecay, "decoupled weight decay; added to that of the network", "[0, )");
  }
  void validate() const {
    detail::requireFraction(kType, "beta1", beta1);
    detail::requireFraction(kType, "beta2", beta2);
    detail::requireEpsilon(kType, epsilon);
    detail::requireNotNegative(kType, "weightDecay", weightDecay);
  }
};

/// RMSProp (`RmsPropRule`).
struct RmsProp {
  static constexpr std::string_view kType = "rmsprop";
  Schedule learningRate = 1e-3;
  double decay = 0.95, epsilon = 1e-8;

  std::vector<std::string> stateNames() const { return {"meanSquare"}; }
  UpdateSettings settings() const { return {.rule = update::RmsPropRule(decay, epsilon)}; }
  void fields(Fields& f) {
    f.field("decay", decay, "share of the mean square that is kept, from 0 to below 1", "[0, 1)");
    f.field("epsilon", epsilon, "added to the root of the mean square", "(0, )");
  }
  void validate() const {
    detail::requireFraction(kType, "decay", decay);
    detail::requireEpsilon(kType, epsilon);
  }
};

/// AdaGrad (`AdaGradRule`).
struct AdaGrad {
  static constexpr std::string_view kType = "adagrad";
  Schedule learningRate = 0.1;
  double epsilon = 1e-6;

  std::vector<std::string> stateNames() const { return {"sumOfSquares"}; }
  UpdateSettings settings() const { return {.rule = update::AdaGradRule(epsilon)}; }
  void fields(Fields& f) { f.field("epsilon", epsilon, "added to the root of the sum of squares", "(0, )"); }
  void validate() const { detail::requireEpsilon(kType, epsilon); }
};

/// Lion (`LionRule`): every weight moves by the learning rate. The paper's is 3 to 10 times smaller than
/// Adam's, with a weight decay (an option of the model) as many times larger.
struct Lion {
  static constexpr std::string_view kType = "lion";
  Schedule learningRate = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;

  std::vector<std::string> stateNames() const { return {"momentum"}; }
  UpdateSettings settings() const { return {.rule = update::LionRule(beta1, beta2)}; }
  void fields(Fields& f) {
    f.field("beta1", beta1, "weight of the momentum in the direction, from 0 to below 1", "[0, 1)");
    f.field("beta2", beta2, "decay of the momentum, from 0 to below 1", "[0, 1)");
  }
  void validate() const {
    detail::requireFraction(kType, "beta1", beta1);
    detail::requireFraction(kType, "beta2", beta2);
  }
};

/// All updaters of the library; files and command lines can name each.
using LibraryUpdaters = std::tuple<Sgd, Nesterovs, Adam, AdamW, RmsProp, AdaGrad, Lion>;

}  // namespace muster
