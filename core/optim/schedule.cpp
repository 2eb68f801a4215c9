#include "muster/core/optim/schedule.h"

#include <cmath>
#include <numbers>
#include <string>
#include <tuple>

#include "muster/core/base/error.h"
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

}  // namespace

Schedule::Schedule(double value) : Schedule(FixedSchedule{value}) {}

void Schedule::field(std::string_view name, Fields& fields) {
  std::string type(holder_->type());
  fields.object(name, type, [&](Fields& inside) {
    if (type != holder_->type()) holder_ = registry().make(type);
    holder_->fields(inside);
  });
}

Registry<detail::ScheduleHolder>& Schedule::registry() {
  static BuiltInSchedules schedules;
  return schedules;
}

void FixedSchedule::fields(Fields& f) {
  f.field("value", value);
}

void FixedSchedule::validate() const {
  requireFinite(kType, "value", value);
}

double StepSchedule::at(std::int64_t iteration, std::int64_t) const {
  return initial * std::pow(decay, static_cast<double>(iteration / every));
}

void StepSchedule::fields(Fields& f) {
  f.field("initial", initial);
  f.field("decay", decay);
  f.field("every", every);
}

void StepSchedule::validate() const {
  requireFinite(kType, "initial", initial);
  requireDecay(kType, decay);
  require(every >= 1, "schedule {}: every must be at least 1 iteration, got {}", kType, every);
}

double ExponentialSchedule::at(std::int64_t iteration, std::int64_t) const {
  return initial * std::pow(decay, static_cast<double>(iteration));
}

void ExponentialSchedule::fields(Fields& f) {
  f.field("initial", initial);
  f.field("decay", decay);
}

void ExponentialSchedule::validate() const {
  requireFinite(kType, "initial", initial);
  requireDecay(kType, decay);
}

double CosineSchedule::at(std::int64_t iteration, std::int64_t) const {
  if (iteration >= iterations) return final;
  const double way = static_cast<double>(iteration) / static_cast<double>(iterations);
  return final + (initial - final) * 0.5 * (1 + std::cos(std::numbers::pi * way));
}

void CosineSchedule::fields(Fields& f) {
  f.field("initial", initial);
  f.field("final", final);
  f.field("iterations", iterations);
}

void CosineSchedule::validate() const {
  requireFinite(kType, "initial", initial);
  requireFinite(kType, "final", final);
  require(iterations >= 1, "schedule {}: iterations must be at least 1, got {}", kType, iterations);
}

double WarmUpSchedule::at(std::int64_t iteration, std::int64_t epoch) const {
  const double target = then.at(iteration, epoch);
  if (iteration >= iterations) return target;
  return target * static_cast<double>(iteration + 1) / static_cast<double>(iterations);
}

void WarmUpSchedule::fields(Fields& f) {
  f.field("iterations", iterations);
  then.field("then", f);
}

void WarmUpSchedule::validate() const {
  require(iterations >= 1, "schedule {}: iterations must be at least 1, got {}", kType, iterations);
  then.validate();
}

}  // namespace muster
