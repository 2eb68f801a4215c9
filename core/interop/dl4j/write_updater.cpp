// Updaters, schedules and regularisation as Deeplearning4j has them.
#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/written_layer.h"
#include "muster/core/optim/schedules.h"

namespace muster::dl4j::detail {
namespace {

namespace json = boost::json;

/// An updater, if its type is T.
template <typename T>
std::optional<T> ruleOf(const Updater& updater) {
  if (updater.type() != T::kType) return std::nullopt;
  JsonWriter writer;
  Updater(updater).field("it", writer);
  JsonReader reader(writer.text());
  T rule;
  std::string type;
  reader.object("it", type, [&](Fields& fields) {
    rule.learningRate.field("learningRate", fields);
    rule.fields(fields);
  });
  return rule;
}

json::object fixedSchedule(double value) {
  json::object schedule = classed("org.nd4j.linalg.schedule.", "FixedSchedule");
  schedule["value"] = value;
  return schedule;
}

/// The numbers of a schedule that is no constant; empty if there is no such schedule there.
json::object scheduleOf(const Schedule& schedule) {
  JsonWriter writer;
  Schedule copy = schedule;
  copy.field("it", writer);
  JsonReader reader(writer.text());
  json::object there;
  const auto read = [&](auto rule, std::string_view type, const auto& fill) {
    if (schedule.type() != rule.kType) return;
    std::string kind;
    reader.object("it", kind, [&](Fields& fields) { rule.fields(fields); });
    there = classed("org.nd4j.linalg.schedule.", type);
    fill(rule);
  };
  read(StepSchedule{}, "StepSchedule", [&](const StepSchedule& s) {
    there["scheduleType"] = s.epochs > 0 ? "EPOCH" : "ITERATION";
    there["initialValue"] = s.initial;
    there["decayRate"] = s.decay;
    there["step"] = static_cast<double>(s.epochs > 0 ? s.epochs : s.every);
  });
  read(ExponentialSchedule{}, "ExponentialSchedule", [&](const ExponentialSchedule& s) {
    there["scheduleType"] = s.epochs > 0 ? "EPOCH" : "ITERATION";
    there["initialValue"] = s.initial;
    there["gamma"] = s.epochs > 1 ? std::pow(s.decay, 1.0 / static_cast<double>(s.epochs)) : s.decay;
  });
  read(WarmUpSchedule{}, "RampSchedule", [&](const WarmUpSchedule& s) {
    if (s.epochs > 0) return there.clear();
    there["baseSchedule"] =
        s.then.type() == FixedSchedule::kType ? fixedSchedule(s.then.at(0)) : scheduleOf(s.then);
    there["numIter"] = s.iterations;
    if (there["baseSchedule"].get_object().empty()) there.clear();
  });
  return there;
}

/// Without the learning rate; empty if there is no such updater there.
json::object ruleJson(const Updater& updater) {
  const auto named = [](std::string_view name) { return classed("org.nd4j.linalg.learning.config.", name); };
  json::object there;
  const auto adam = [&](const auto& rule) {
    there = named("Adam");
    there["beta1"] = rule.beta1;
    there["beta2"] = rule.beta2;
    there["epsilon"] = rule.epsilon;
  };
  if (const auto rule = ruleOf<Sgd>(updater); rule && rule->momentum == 0) there = named("Sgd");
  if (const auto rule = ruleOf<Adam>(updater)) adam(*rule);
  if (const auto rule = ruleOf<AdamW>(updater)) adam(*rule);
  if (const auto rule = ruleOf<Nesterovs>(updater)) {
    there = named("Nesterovs");
    there["momentum"] = rule->momentum;
  }
  if (const auto rule = ruleOf<RmsProp>(updater)) {
    there = named("RmsProp");
    there["epsilon"] = rule->epsilon;
    there["rmsDecay"] = rule->decay;
  }
  if (const auto rule = ruleOf<AdaGrad>(updater)) {
    there = named("AdaGrad");
    there["epsilon"] = rule->epsilon;
  }
  return there;
}

}  // namespace

json::array regularisationJson(const TrainingOptions& training) {
  json::array all;
  const auto add = [&](std::string_view type, std::string_view name, double value) {
    if (value == 0) return;
    json::object term = classed("org.nd4j.linalg.learning.regularization.", type);
    if (type == "WeightDecay") term["applyLR"] = true;
    term[name] = fixedSchedule(value);
    all.emplace_back(std::move(term));
  };
  double decay = training.weightDecay;
  if (const auto settings = training.updater.settings()) decay += settings->weightDecay;
  add("L1Regularization", "l1", training.l1);
  add("L2Regularization", "l2", training.l2);
  add("WeightDecay", "coeff", decay);
  return all;
}

json::object updaterJson(const Updater& updater, double learningRateScale, Problems& problems) {
  json::object there = ruleJson(updater);
  if (there.empty()) problems.add({}, fmt::format("the updater {}", updater.type()));
  const Schedule& rate = updater.learningRate();
  there["learningRate"] = rate.at(0) * learningRateScale;
  if (rate.type() == FixedSchedule::kType) return there;
  json::object schedule = scheduleOf(rate);
  if (schedule.empty()) problems.add({}, fmt::format("learning rates by the schedule {}", rate.type()));
  if (learningRateScale != 1) problems.add({}, "a layer's own learning rate together with a schedule");
  there["learningRateSchedule"] = std::move(schedule);
  return there;
}

}  // namespace muster::dl4j::detail
