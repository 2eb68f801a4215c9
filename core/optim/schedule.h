#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "muster/core/base/fields.h"
#include "muster/core/base/registry.h"

namespace muster {

/// An option struct that is a schedule: it has a type name, a value for every iteration, fields and a check.
/// `iteration` is the number of rounds before this one and `epoch` the number of epochs before it, both from
/// 0 over the life of the model.
template <typename T>
concept ScheduleRule = requires(const T& rule, T& mutableRule, std::int64_t n, Fields& fields) {
  { T::kType } -> std::convertible_to<std::string_view>;
  { rule.at(n, n) } -> std::convertible_to<double>;
  mutableRule.fields(fields);
  rule.validate();
};

// Which unit to take: with W workers an epoch has a W-th of the iterations, so a schedule over iterations
// runs W times as long. A schedule over epochs is the same for any number of workers.

namespace detail {
struct ScheduleHolder {
  virtual ~ScheduleHolder() = default;
  virtual std::string_view type() const = 0;
  virtual double at(std::int64_t iteration, std::int64_t epoch) const = 0;
  virtual std::optional<std::int64_t> iterations() const = 0;
  virtual void fields(Fields& fields) = 0;
  virtual void validate() const = 0;
  virtual std::unique_ptr<ScheduleHolder> clone() const = 0;
};

template <ScheduleRule Rule>
struct ScheduleOf final : ScheduleHolder {
  explicit ScheduleOf(Rule r = {}) : rule(std::move(r)) {}
  std::string_view type() const override { return Rule::kType; }
  double at(std::int64_t iteration, std::int64_t epoch) const override { return rule.at(iteration, epoch); }
  std::optional<std::int64_t> iterations() const override {
    if constexpr (requires { rule.length(); }) return rule.length();
    return std::nullopt;
  }
  void fields(Fields& fields) override { rule.fields(fields); }
  void validate() const override { rule.validate(); }
  std::unique_ptr<ScheduleHolder> clone() const override { return std::make_unique<ScheduleOf>(rule); }
  Rule rule;
};
}  // namespace detail

/// A constant, or a rule over the iterations: `0.01`, or `CosineSchedule{...}`. A value.
class Schedule {
 public:
  Schedule(double value = 0);  // NOLINT(google-explicit-constructor): a plain number is a schedule
  template <ScheduleRule Rule>
  Schedule(const Rule& rule)  // NOLINT(google-explicit-constructor): as above
      : holder_(std::make_unique<detail::ScheduleOf<Rule>>(rule)) {}
  Schedule(const Schedule& other) : holder_(other.holder_->clone()) {}
  Schedule(Schedule&&) noexcept = default;
  Schedule& operator=(Schedule other) noexcept {
    holder_ = std::move(other.holder_);
    return *this;
  }

  double at(std::int64_t iteration, std::int64_t epoch = 0) const { return holder_->at(iteration, epoch); }
  std::string_view type() const { return holder_->type(); }
  /// The iterations after which it no longer changes: 0 for a constant. Empty if it changes for ever or with
  /// the epochs, and for a rule of your own without the optional member `length()`.
  std::optional<std::int64_t> iterations() const { return holder_->iterations(); }
  /// @throws InvalidArgument for values out of range.
  void validate() const { holder_->validate(); }
  /// Visits the schedule as one field called `name`.
  void field(std::string_view name, Fields& fields);

  /// The schedules that files can name; add your own type with `add(T::kType, ...)`.
  static Registry<detail::ScheduleHolder>& registry();

 private:
  std::unique_ptr<detail::ScheduleHolder> holder_;  // empty only after a move
};

/// Always `value`.
struct FixedSchedule {
  static constexpr std::string_view kType = "fixed";
  double value = 0;
  double at(std::int64_t, std::int64_t) const { return value; }
  std::optional<std::int64_t> length() const { return 0; }
  void fields(Fields& f);
  void validate() const;
};

/// initial * decay^floor(iteration / every), or initial * decay^floor(epoch / epochs): PyTorch's StepLR.
struct StepSchedule {
  static constexpr std::string_view kType = "step";
  double initial = 0.1;
  double decay = 0.1;
  std::int64_t every = 1000;  ///< iterations
  std::int64_t epochs = 0;    ///< instead of iterations, if above 0
  double at(std::int64_t iteration, std::int64_t epoch) const;
  void fields(Fields& f);
  void validate() const;
};

/// initial * decay^iteration, or initial * decay^(epoch / epochs).
struct ExponentialSchedule {
  static constexpr std::string_view kType = "exponential";
  double initial = 0.1;
  double decay = 0.999;
  std::int64_t epochs = 0;  ///< instead of iterations, if above 0: the epochs that multiply it by `decay`
  double at(std::int64_t iteration, std::int64_t epoch) const;
  void fields(Fields& f);
  void validate() const;
};

/// From `initial` to `final` along half a cosine over `iterations` or over `epochs` (then constant within an
/// epoch, as PyTorch's CosineAnnealingLR called once per epoch), then `final`. Source: Loshchilov and Hutter
/// 2017, "SGDR", without restarts.
struct CosineSchedule {
  static constexpr std::string_view kType = "cosine";
  double initial = 0.1;
  double final = 0;
  std::int64_t iterations = 1000;
  std::int64_t epochs = 0;  ///< instead of iterations, if above 0
  double at(std::int64_t iteration, std::int64_t epoch) const;
  std::optional<std::int64_t> length() const { return epochs > 0 ? std::nullopt : std::optional(iterations); }
  void fields(Fields& f);
  void validate() const;
};

/// Grows linearly over `iterations` to the value of `then`, which counts from the start of the training:
/// then * (i + 1) / iterations while iteration i < iterations; or likewise over `epochs`, once per epoch.
/// Source: Goyal et al. 2017.
struct WarmUpSchedule {
  static constexpr std::string_view kType = "warmup";
  std::int64_t iterations = 100;
  std::int64_t epochs = 0;  ///< instead of iterations, if above 0
  Schedule then = 0.1;
  double at(std::int64_t iteration, std::int64_t epoch) const;
  std::optional<std::int64_t> length() const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
