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

/// The input of an updater's own `apply` for one step.
struct UpdateStep {
  UpdateBlocks blocks;
  std::span<const UpdateRange> ranges;  ///< their `learningRate` is that of the step
  /// g = clamp(g * gradientScale, -clipValue, clipValue) before regularisation; clipValue 0: no clamp.
  float gradientScale = 1, clipValue = 0;
  std::int64_t iteration = 0;  ///< rounds before this one, from 0 over the life of the model
  std::int64_t updates = 1;    ///< of these parameters, including this one: Adam corrects its moments by it
};

/// An option struct that is an updater (a rule that turns gradients into a step): a type name, the names of
/// its state blocks (at most two, each as long as the parameters), a learning rate, its other options
/// (`fields`, for files) and their check. One of two members defines the rule:
///
/// - `UpdateSettings settings() const` names a rule of `ops/update_rules.h`: it is planned, and enqueued on a
/// GPU.
/// - `double apply(const UpdateStep&, Context&) const` computes any update and returns the regularisation
/// penalty. On a GPU each step waits for it, which the log says.
template <typename T>
concept UpdaterRule = requires(const T& rule, T& mutableRule, Fields& fields) {
  { T::kType } -> std::convertible_to<std::string_view>;
  { rule.stateNames() } -> std::convertible_to<std::vector<std::string>>;
  { rule.learningRate } -> std::convertible_to<const Schedule&>;
  mutableRule.fields(fields);
  rule.validate();
}
&&(
    requires(const T& rule) {
      { rule.settings() } -> std::convertible_to<UpdateSettings>;
    } ||
    requires(const T& rule, const UpdateStep& step, Context& context) {
      { rule.apply(step, context) } -> std::convertible_to<double>;
    });

namespace detail {
struct UpdaterHolder {
  virtual ~UpdaterHolder() = default;
  virtual std::string_view type() const = 0;
  virtual std::vector<std::string> stateNames() const = 0;
  virtual const Schedule& learningRate() const = 0;
  virtual void setLearningRate(Schedule schedule) = 0;
  virtual std::optional<UpdateSettings> settings() const = 0;
  virtual double apply(const UpdateStep& step, Context& context) const = 0;
  virtual void fields(Fields& fields) = 0;
  virtual void validate() const = 0;
  virtual std::unique_ptr<UpdaterHolder> clone() const = 0;
};

/// @throws InvalidArgument unless it is valid, and initially finite and not negative.
void requireLearningRate(std::string_view type, const Schedule& schedule);

template <UpdaterRule Rule>
struct UpdaterOf final : UpdaterHolder {
  explicit UpdaterOf(Rule r = {}) : rule(std::move(r)) {}
  std::string_view type() const override { return Rule::kType; }
  std::vector<std::string> stateNames() const override { return rule.stateNames(); }
  const Schedule& learningRate() const override { return rule.learningRate; }
  void setLearningRate(Schedule schedule) override { rule.learningRate = std::move(schedule); }
  std::optional<UpdateSettings> settings() const override {
    if constexpr (requires { rule.settings(); }) return rule.settings();
    return std::nullopt;
  }
  double apply(const UpdateStep& step, Context& context) const override {
    if constexpr (requires { rule.apply(step, context); }) return rule.apply(step, context);
    throw InvalidArgument(fmt::format("updater {}: it has no apply(), only settings()", type()));
  }
  void fields(Fields& fields) override {
    fields.field("learningRate", rule.learningRate, "a number, or a schedule");
    rule.fields(fields);
  }
  void validate() const override {
    requireLearningRate(type(), rule.learningRate);
    rule.validate();
  }
  std::unique_ptr<UpdaterHolder> clone() const override { return std::make_unique<UpdaterOf>(rule); }
  Rule rule;
};
}  // namespace detail

namespace detail {
/// Whether a struct is meant as an updater, though a member may be missing.
template <typename T>
concept MeantAsUpdater = !UpdaterRule<T> && (
                                                requires { T::kType; } || requires { &T::stateNames; });

/// Fails to compile, with the name of the first member that the struct lacks.
template <typename T>
void requireUpdaterMembers() {
  static_assert(
      requires {
        { T::kType } -> std::convertible_to<std::string_view>;
      },
      "this updater lacks: static constexpr std::string_view kType");
  static_assert(
      requires(const T& t) {
        { t.learningRate } -> std::convertible_to<const Schedule&>;
      },
      "this updater lacks: Schedule learningRate");
  static_assert(
      requires(const T& t) {
        { t.stateNames() } -> std::convertible_to<std::vector<std::string>>;
      },
      "this updater lacks: std::vector<std::string> stateNames() const");
  static_assert(
      requires(const T& t) {
        { t.settings() } -> std::convertible_to<UpdateSettings>;
      } ||
          requires(const T& t, const UpdateStep& s, Context& c) {
            { t.apply(s, c) } -> std::convertible_to<double>;
          },
      "this updater lacks: double apply(const UpdateStep&, Context&) const (or settings())");
  static_assert(
      requires(T & t, Fields & f) { t.fields(f); }, "this updater lacks: void fields(Fields&)");
  static_assert(
      requires(const T& t) { t.validate(); }, "this updater lacks: void validate() const");
}
}  // namespace detail

/// Any updater: `Nesterovs{.learningRate = 0.01}`. A value. Default: Sgd with learning rate 0.1.
class Updater {
 public:
  Updater();
  template <UpdaterRule Rule>
  Updater(const Rule& rule)  // NOLINT(google-explicit-constructor): a rule is an updater
      : holder_(std::make_unique<detail::UpdaterOf<Rule>>(rule)) {}
  /// Names the member that a struct lacks.
  template <detail::MeantAsUpdater Rule>
  Updater(const Rule&) {  // NOLINT(google-explicit-constructor): as above
    detail::requireUpdaterMembers<Rule>();
  }
  Updater(const Updater& other) : holder_(other.holder_->clone()) {}
  Updater(Updater&&) noexcept = default;
  Updater& operator=(Updater other) noexcept {
    holder_ = std::move(other.holder_);
    return *this;
  }

  std::string_view type() const { return holder_->type(); }
  std::vector<std::string> stateNames() const { return holder_->stateNames(); }
  const Schedule& learningRate() const { return holder_->learningRate(); }
  /// The same updater with another learning rate.
  Updater withLearningRate(Schedule schedule) const {
    Updater other(*this);
    other.holder_->setLearningRate(std::move(schedule));
    return other;
  }
  double apply(const UpdateStep& step, Context& context) const { return holder_->apply(step, context); }
  /// The settings for its plan; empty for a rule with its own `apply`.
  std::optional<UpdateSettings> settings() const { return holder_->settings(); }
  void validate() const { holder_->validate(); }
  /// Visits the updater as one field called `name`.
  void field(std::string_view name, Fields& fields);

  /// The updaters that files can name.
  static Registry<detail::UpdaterHolder>& registry();
  /// Adds your own updater to them. A second call does nothing. @throws InvalidArgument if another updater
  /// has this `kType`.
  template <UpdaterRule Rule>
  static void registerType() {
    registry().add(Rule::kType, [] { return std::make_unique<detail::UpdaterOf<Rule>>(); });
  }
  /// The updater called `type` with its defaults and this learning rate, for command lines.
  /// @throws InvalidArgument naming the types that exist.
  static Updater named(std::string_view type, double learningRate);

 private:
  std::unique_ptr<detail::UpdaterHolder> holder_;
};

}  // namespace muster
