#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/core/base/registry.h"
#include "muster/core/ops/update.h"
#include "muster/core/optim/schedule.h"

namespace muster {

/// What an updater is given for one step; `ranges` carry the learning rates already.
struct UpdateStep {
  UpdateBlocks blocks;
  std::span<const UpdateRange> ranges;
  GradientClip clip;
  std::int64_t iteration = 0;  ///< rounds before this one, from 0 over the life of the model
};

/// An option struct that is an updater (a rule that turns gradients into a step): a type name, the names of
/// the state blocks it keeps (at most two, each as long as the parameters), a learning rate, and the step
/// itself, which returns the regularisation penalty as the ops of `ops/update.h` do. One that is among the
/// rules of `UpdateSettings` may also have `settings()`, and can then be enqueued on a GPU; without it each
/// step there waits for `apply`.
template <typename T>
concept UpdaterRule = requires(const T& rule, T& mutableRule, const UpdateStep& step, Fields& fields,
                               Context& c) {
  { T::kType } -> std::convertible_to<std::string_view>;
  { rule.stateNames() } -> std::convertible_to<std::vector<std::string>>;
  { rule.learningRate } -> std::convertible_to<const Schedule&>;
  { rule.apply(step, c) } -> std::convertible_to<double>;
  mutableRule.fields(fields);
  rule.validate();
};

namespace detail {
struct UpdaterHolder {
  virtual ~UpdaterHolder() = default;
  virtual std::string_view type() const = 0;
  virtual std::vector<std::string> stateNames() const = 0;
  virtual const Schedule& learningRate() const = 0;
  virtual void setLearningRate(Schedule schedule) = 0;
  virtual double apply(const UpdateStep& step, Context& context) const = 0;
  virtual std::optional<UpdateSettings> settings() const = 0;
  virtual void fields(Fields& fields) = 0;
  virtual void validate() const = 0;
  virtual std::unique_ptr<UpdaterHolder> clone() const = 0;
};

template <UpdaterRule Rule>
struct UpdaterOf final : UpdaterHolder {
  explicit UpdaterOf(Rule r = {}) : rule(std::move(r)) {}
  std::string_view type() const override { return Rule::kType; }
  std::vector<std::string> stateNames() const override { return rule.stateNames(); }
  const Schedule& learningRate() const override { return rule.learningRate; }
  void setLearningRate(Schedule schedule) override { rule.learningRate = std::move(schedule); }
  double apply(const UpdateStep& step, Context& context) const override { return rule.apply(step, context); }
  std::optional<UpdateSettings> settings() const override {
    if constexpr (requires { rule.settings(); }) return rule.settings();
    return std::nullopt;
  }
  void fields(Fields& fields) override { rule.fields(fields); }
  void validate() const override { rule.validate(); }
  std::unique_ptr<UpdaterHolder> clone() const override { return std::make_unique<UpdaterOf>(rule); }
  Rule rule;
};
}  // namespace detail

/// Any updater: `Nesterovs{.learningRate = 0.01}`. A value. Default: Sgd with learning rate 0.1.
class Updater {
 public:
  Updater();
  template <UpdaterRule Rule>
  Updater(const Rule& rule)  // NOLINT(google-explicit-constructor): a rule is an updater
      : holder_(std::make_unique<detail::UpdaterOf<Rule>>(rule)) {}
  Updater(const Updater& other) : holder_(other.holder_->clone()) {}
  Updater(Updater&&) noexcept = default;
  Updater& operator=(Updater other) noexcept {
    holder_ = std::move(other.holder_);
    return *this;
  }

  std::string_view type() const { return holder_->type(); }
  std::vector<std::string> stateNames() const { return holder_->stateNames(); }
  const Schedule& learningRate() const { return holder_->learningRate(); }
  double apply(const UpdateStep& step, Context& context) const { return holder_->apply(step, context); }
  /// What a plan of it is made of; nothing for a rule that only `apply` knows.
  std::optional<UpdateSettings> settings() const { return holder_->settings(); }
  void validate() const { holder_->validate(); }
  /// Visits the updater as one field called `name`.
  void field(std::string_view name, Fields& fields);

  /// The updaters that files can name.
  static Registry<detail::UpdaterHolder>& registry();
  /// The updater called `type` with its defaults and this learning rate, as a command line names it.
  /// @throws InvalidArgument naming the types that exist.
  static Updater named(std::string_view type, double learningRate);

 private:
  std::unique_ptr<detail::UpdaterHolder> holder_;
};

/// Stochastic gradient descent: w -= lr g.
struct Sgd {
  static constexpr std::string_view kType = "sgd";
  Schedule learningRate = 0.1;
  std::vector<std::string> stateNames() const { return {}; }
  double apply(const UpdateStep& step, Context& context) const;
  UpdateSettings settings() const;
  void fields(Fields& f);
  void validate() const;
};

/// Nesterov momentum, the learning rate outside the velocity (see `updateNesterovs`).
struct Nesterovs {
  static constexpr std::string_view kType = "nesterovs";
  Schedule learningRate = 0.1;
  double momentum = 0.9;
  std::vector<std::string> stateNames() const { return {"velocity"}; }
  double apply(const UpdateStep& step, Context& context) const;
  UpdateSettings settings() const;
  void fields(Fields& f);
  void validate() const;
};

/// Adam (see `updateAdam`).
struct Adam {
  static constexpr std::string_view kType = "adam";
  Schedule learningRate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  std::vector<std::string> stateNames() const { return {"firstMoment", "secondMoment"}; }
  double apply(const UpdateStep& step, Context& context) const;
  UpdateSettings settings() const;
  void fields(Fields& f);
  void validate() const;
};

/// Adam with decoupled weight decay of its own, 0.01 by default. The decay of the model's options is added.
struct AdamW {
  static constexpr std::string_view kType = "adamw";
  Schedule learningRate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weightDecay = 0.01;
  std::vector<std::string> stateNames() const { return {"firstMoment", "secondMoment"}; }
  double apply(const UpdateStep& step, Context& context) const;
  UpdateSettings settings() const;
  void fields(Fields& f);
  void validate() const;
};

/// RMSProp (see `updateRmsProp`).
struct RmsProp {
  static constexpr std::string_view kType = "rmsprop";
  Schedule learningRate = 1e-3;
  double decay = 0.95, epsilon = 1e-8;
  std::vector<std::string> stateNames() const { return {"meanSquare"}; }
  double apply(const UpdateStep& step, Context& context) const;
  UpdateSettings settings() const;
  void fields(Fields& f);
  void validate() const;
};

/// AdaGrad (see `updateAdaGrad`).
struct AdaGrad {
  static constexpr std::string_view kType = "adagrad";
  Schedule learningRate = 0.1;
  double epsilon = 1e-6;
  std::vector<std::string> stateNames() const { return {"sumOfSquares"}; }
  double apply(const UpdateStep& step, Context& context) const;
  UpdateSettings settings() const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
