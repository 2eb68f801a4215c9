#include "muster/core/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <tuple>

#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/optim/schedules.h"

namespace muster {
namespace {

/// A registry that initially contains the library's schedules.
struct BuiltInSchedules : Registry<detail::ScheduleHolder> {
  BuiltInSchedules() : Registry("schedule") { addAll(static_cast<LibrarySchedules*>(nullptr)); }
  template <typename... Rule>
  void addAll(std::tuple<Rule...>*) {
    (add(Rule::kType, [] { return std::make_unique<detail::ScheduleOf<Rule>>(); }), ...);
  }
};

void requireFinite(std::string_view type, std::string_view option, double value) {
  require(std::isfinite(value), "schedule {}: {} must be finite, got {}", type, option, value);
}

void requireDecay(std::string_view type, double decay) {
  require(std::isfinite(decay) && decay > 0, "schedule {}: decay must be positive and finite, got {}", type,
          decay);
}

void requireNotNegative(std::string_view type, std::int64_t epochs) {
  require(epochs >= 0, "schedule {}: epochs cannot be negative, got {}", type, epochs);
}

/// Iterations and epochs are two ways to give the same.
template <typename Rule>
void requireOneUnit(const Rule& rule, std::int64_t Rule::*iterations, std::string_view name) {
  require(rule.*iterations >= 1, "schedule {}: {} must be at least 1{}, got {}", Rule::kType, name,
          name == "every" ? " iteration" : "", rule.*iterations);
  requireNotNegative(Rule::kType, rule.epochs);
  require(rule.epochs == 0 || rule.*iterations == Rule{}.*iterations,
          "schedule {}: {} and epochs contradict each other; give one of them", Rule::kType, name);
}

}  // namespace

Schedule::Schedule(double value) : Schedule(FixedSchedule{value}) {}

void Schedule::field(std::string_view name, Fields& fields) {
  std::string type(holder_->type());
  fields.object(name, type, [&](Fields& inside) {
    if (type != holder_->type()) holder_ = makeByName(registry(), type);
    holder_->fields(inside);
  });
}

Registry<detail::ScheduleHolder>& Schedule::registry() {
  static BuiltInSchedules schedules;
  return schedules;
}

void FixedSchedule::fields(Fields& f) {
  f.field("value", value, "the value at all times", "[0, )");
}

void FixedSchedule::validate() const {
  requireFinite(kType, "value", value);
}

double StepSchedule::at(std::int64_t iteration, std::int64_t epoch) const {
  const std::int64_t steps = epochs > 0 ? epoch / epochs : iteration / every;
  return initial * std::pow(decay, static_cast<double>(steps));
}

void StepSchedule::fields(Fields& f) {
  f.field("initial", initial, "the value at the beginning", "[0, )");
  f.field("decay", decay, "factor, above 0", "(0, )");
  f.field("every", every, "iterations from one multiplication by decay to the next", "[1, )");
  f.field("epochs", epochs, "epochs from one multiplication to the next, in place of every; 0: by every",
          "[0, )");
}

void StepSchedule::validate() const {
  requireFinite(kType, "initial", initial);
  requireDecay(kType, decay);
  requireOneUnit(*this, &StepSchedule::every, "every");
}

double ExponentialSchedule::at(std::int64_t iteration, std::int64_t epoch) const {
  const double times =
      epochs > 0 ? static_cast<double>(epoch) / static_cast<double>(epochs) : static_cast<double>(iteration);
  return initial * std::pow(decay, times);
}

void ExponentialSchedule::fields(Fields& f) {
  f.field("initial", initial, "the value at the beginning", "[0, )");
  f.field("decay", decay, "factor, above 0", "(0, )");
  f.field("epochs", epochs, "epochs that multiply it by decay once; 0: each iteration does", "[0, )");
}

void ExponentialSchedule::validate() const {
  requireFinite(kType, "initial", initial);
  requireDecay(kType, decay);
  requireNotNegative(kType, epochs);
}

double CosineSchedule::at(std::int64_t iteration, std::int64_t epoch) const {
  const std::int64_t now = epochs > 0 ? epoch : iteration, end = epochs > 0 ? epochs : iterations;
  if (now >= end) return final;
  const double way = static_cast<double>(now) / static_cast<double>(end);
  return final + (initial - final) * 0.5 * (1 + std::cos(std::numbers::pi * way));
}

void CosineSchedule::fields(Fields& f) {
  f.field("initial", initial, "the value at the beginning", "[0, )");
  f.field("final", final, "the value at the end, and after it", "[0, )");
  f.field("iterations", iterations, "when it ends", "[1, )");
  f.field("epochs", epochs, "when it ends, in place of iterations; 0: by iterations", "[0, )");
}

void CosineSchedule::validate() const {
  requireFinite(kType, "initial", initial);
  require(std::isfinite(final) && final >= 0, "schedule {}: final must be finite and not negative, got {}",
          kType, final);
  requireOneUnit(*this, &CosineSchedule::iterations, "iterations");
}

double WarmUpSchedule::at(std::int64_t iteration, std::int64_t epoch) const {
  const double target = then.at(iteration, epoch);
  const std::int64_t now = epochs > 0 ? epoch : iteration, end = epochs > 0 ? epochs : iterations;
  if (now >= end) return target;
  return target * static_cast<double>(now + 1) / static_cast<double>(end);
}

std::optional<std::int64_t> WarmUpSchedule::length() const {
  const auto rest = then.iterations();
  if (epochs > 0 || !rest) return std::nullopt;
  return std::max(iterations, *rest);
}

void WarmUpSchedule::fields(Fields& f) {
  f.field("iterations", iterations, "length of the warm-up", "[1, )");
  f.field("epochs", epochs, "length of the warm-up, in place of iterations; 0: by iterations", "[0, )");
  f.field("then", then, "the schedule that the warm-up leads to; it counts from the beginning, too");
}

void WarmUpSchedule::validate() const {
  requireOneUnit(*this, &WarmUpSchedule::iterations, "iterations");
  then.validate();
}

}  // namespace muster
