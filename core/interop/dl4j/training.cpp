#include "muster/core/interop/dl4j/detail/training.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/optim/schedules.h"

namespace muster::dl4j::detail {
namespace {

namespace json = boost::json;

Options updaterOf(const Options& layer) {
  return layer.object({"iupdater", "iUpdater"});
}

std::int64_t stepsIn(const Options& schedule, std::string_view name) {
  const double steps = schedule.number({name}, 0);
  if (steps >= 1 && steps <= 1e15 && steps == std::floor(steps)) return static_cast<std::int64_t>(steps);
  schedule.refuse(fmt::format("a schedule whose {} is {}", name, steps));
  return 1;
}

Schedule scheduleIn(const Options& s) {
  const std::string type = s.type();
  if (type == "FixedSchedule") return s.number({"value"}, 0);
  const bool epochs = s.word({"scheduleType"}, "ITERATION") == "EPOCH";
  const double initial = s.number({"initialValue"}, 0);
  if (type == "StepSchedule") {
    StepSchedule steps{.initial = initial, .decay = s.number({"decayRate"}, 0)};
    (epochs ? steps.epochs : steps.every) = stepsIn(s, "step");
    return steps;
  }
  if (type == "ExponentialSchedule")
    return ExponentialSchedule{.initial = initial, .decay = s.number({"gamma"}, 0), .epochs = epochs ? 1 : 0};
  if (type == "RampSchedule")
    return WarmUpSchedule{.iterations = stepsIn(s, "numIter"),
                          .then = scheduleIn(s.object({"baseSchedule"}))};
  s.refuse("learning rates by " + (type.empty() ? "no schedule" : type));
  return 0;
}

/// @param initialState  is set for updaters whose state does not begin with 0.
Updater updaterIn(const Options& u, const Schedule& rate, double& initialState) {
  const std::string type = u.type();
  if (u.find({"momentumISchedule", "momentumSchedule"})) u.refuse("momentum by a schedule");
  if (type == "Nesterovs")
    return Nesterovs{.learningRate = rate, .momentum = u.number({"momentum"}, 0.9), .rateInVelocity = true};
  if (type == "Adam")
    return Adam{.learningRate = rate,
                .beta1 = u.number({"beta1"}, 0.9),
                .beta2 = u.number({"beta2"}, 0.999),
                .epsilon = u.number({"epsilon"}, 1e-8),
                .epsilonHat = true};
  if (type == "RmsProp") {
    initialState = u.number({"epsilon"}, 1e-8);
    return RmsProp{.learningRate = rate, .decay = u.number({"rmsDecay"}, 0.95), .epsilon = initialState};
  }
  if (type == "AdaGrad") {
    initialState = u.number({"epsilon"}, 1e-6);
    return AdaGrad{.learningRate = rate, .epsilon = initialState};
  }
  if (type != "Sgd" && type != "NoOp") u.refuse("updater " + (type.empty() ? "without a class" : type));
  return Sgd{.learningRate = rate};
}

/// A coefficient that is a number or a constant schedule.
double coefficientIn(const Options& term, std::string_view name) {
  const json::value* value = term.find({name});
  if (value == nullptr || value->is_number()) return term.number({name}, 0);
  const Options schedule = term.object({name});
  if (schedule.type() != "FixedSchedule") term.refuse(fmt::format("{} by {}", name, schedule.type()));
  return schedule.number({"value"}, 0);
}

/// Earlier files have NaN for what is not set.
double plainCoefficient(const Options& layer, std::string_view name) {
  const double value = layer.number({name}, 0);
  return std::isfinite(value) ? value : 0;
}

}  // namespace

std::string TrainingReader::updaterKey(const Options& layer) {
  const Options updater = updaterOf(layer);
  const std::string type = updater.type();
  return type == "NoOp" || type == "Sgd" || type.empty() ? std::string() : json::serialize(updater.json());
}

double TrainingReader::add(const Options& layer, bool regularised) {
  for (const auto* const name : {"constraints", "weightNoise"})
    if (const json::value* value = layer.find({name});
        value != nullptr && !(value->is_array() && value->get_array().empty()))
      layer.refuse(name);
  if (const json::value* bias = layer.find({"biasUpdater"});
      bias != nullptr && *bias != json::value(updaterOf(layer).json()))
    layer.refuse("an updater of its own for biases");
  addClipping(layer);
  if (regularised) addTerms(layer);
  return addUpdater(layer);
}

double TrainingReader::addUpdater(const Options& layer) {
  const Options updater = updaterOf(layer);
  const bool scheduled = updater.find({"learningRateSchedule"}) != nullptr;
  const double rate = updater.number({"learningRate"}, 0);
  if (!scheduled && !(std::isfinite(rate) && rate >= 0) && updater.type() != "NoOp")
    layer.refuse("a learning rate that is not a number of at least 0");
  if (updater.type() == "NoOp") return 0;
  json::object rest = updater.json();
  rest.erase("learningRate");
  if (updater_) {
    if (rest != *updater_) layer.refuse("another updater than the first layer");
    if (scheduled || rate == learningRate_) return 1;
    if (learningRate_ > 0) return rate / learningRate_;
    layer.refuse("another learning rate than the first layer, whose is 0");
    return 1;
  }
  updater_ = std::move(rest);
  learningRate_ = rate;
  const Schedule schedule = scheduled ? scheduleIn(updater.object({"learningRateSchedule"})) : Schedule(rate);
  options_.updater = updaterIn(updater, schedule, initialState_);
  return 1;
}

void TrainingReader::addTerms(const Options& layer) {
  Terms terms{.l1 = plainCoefficient(layer, "l1"), .l2 = plainCoefficient(layer, "l2")};
  if (const json::value* all = layer.find({"regularization"}); all != nullptr && all->is_array())
    for (const auto& one : all->get_array()) {
      if (!one.is_object()) continue;
      const Options term(one.get_object(), layer.place(), layer.problems());
      const std::string type = term.type();
      if (type == "L1Regularization") {
        terms.l1 += coefficientIn(term, "l1");
      } else if (type == "L2Regularization") {
        terms.l2 += coefficientIn(term, "l2");
      } else if (type == "WeightDecay") {
        const double rate = updaterOf(layer).number({"learningRate"}, 0);
        const bool byRate = term.flag("applyLR", true);
        if (!byRate && !(rate > 0)) layer.refuse("weight decay without a constant learning rate");
        terms.weightDecay += coefficientIn(term, "coeff") / (byRate || !(rate > 0) ? 1 : rate);
      } else {
        layer.refuse("regularisation " + type);
      }
    }
  const auto* const biases = layer.find({"regularizationBias"});
  if ((biases != nullptr && biases->is_array() && !biases->get_array().empty()) ||
      plainCoefficient(layer, "l1Bias") != 0 || plainCoefficient(layer, "l2Bias") != 0)
    layer.refuse("regularisation of biases");
  if (terms_ && *terms_ != terms) layer.refuse("another L1, L2 or weight decay than the first layer");
  if (terms_) return;
  terms_ = terms;
  options_.l1 = terms.l1;
  options_.l2 = terms.l2;
  options_.weightDecay = terms.weightDecay;
}

void TrainingReader::addClipping(const Options& layer) {
  const std::string kind = layer.word({"gradientNormalization"}, "None");
  double value = 0;
  if (kind == "ClipElementWiseAbsoluteValue")
    value = layer.number({"gradientNormalizationThreshold"}, 1);
  else if (kind != "None")
    layer.refuse("gradientNormalization " + kind);
  if (clipValue_ && *clipValue_ != value) layer.refuse("another clipping than the first layer");
  if (clipValue_) return;
  clipValue_ = value;
  options_.clipValue = value;
}

}  // namespace muster::dl4j::detail
