#include "muster/core/optim/updater.h"

#include <cmath>

#include "muster/core/base/error.h"

namespace muster {
namespace {

template <typename Rule>
void addType(Registry<detail::UpdaterHolder>& registry) {
  registry.add(Rule::kType, [] { return std::make_unique<detail::UpdaterOf<Rule>>(); });
}

struct BuiltInUpdaters : Registry<detail::UpdaterHolder> {
  BuiltInUpdaters() : Registry("updater") {
    addType<Sgd>(*this);
    addType<Nesterovs>(*this);
    addType<Adam>(*this);
    addType<AdamW>(*this);
    addType<RmsProp>(*this);
    addType<AdaGrad>(*this);
  }
};

void requireLearningRate(std::string_view type, const Schedule& schedule) {
  schedule.validate();
  const double first = schedule.at(0);
  require(std::isfinite(first) && first >= 0,
          "updater {}: the learning rate must be finite and not negative, but it starts at {}", type, first);
}

void requireFraction(std::string_view type, std::string_view option, double value) {
  require(value >= 0 && value < 1, "updater {}: {} must be in [0, 1), got {}", type, option, value);
}

/// The step divides by a root plus epsilon in float32, so epsilon must not vanish there.
void requireEpsilon(std::string_view type, double epsilon) {
  require(std::isfinite(epsilon) && static_cast<float>(epsilon) > 0,
          "updater {}: epsilon must be positive and finite in float32, got {}", type, epsilon);
}

/// What Adam and AdamW have in common.
template <typename Rule>
void visitAdam(Rule& rule, Fields& f) {
  rule.learningRate.field("learningRate", f);
  f.field("beta1", rule.beta1);
  f.field("beta2", rule.beta2);
  f.field("epsilon", rule.epsilon);
}

template <typename Rule>
void requireAdam(const Rule& rule) {
  requireLearningRate(Rule::kType, rule.learningRate);
  requireFraction(Rule::kType, "beta1", rule.beta1);
  requireFraction(Rule::kType, "beta2", rule.beta2);
  requireEpsilon(Rule::kType, rule.epsilon);
}

AdamScalars adamScalars(double beta1, double beta2, double epsilon, double weightDecay,
                        std::int64_t iteration) {
  return {.beta1 = beta1,
          .beta2 = beta2,
          .epsilon = epsilon,
          .t = iteration + 1,
          .weightDecay = static_cast<float>(weightDecay)};
}

}  // namespace

Updater::Updater() : Updater(Sgd{}) {}

void Updater::field(std::string_view name, Fields& fields) {
  std::string type(holder_->type());
  fields.object(name, type, [&](Fields& inside) {
    if (type != holder_->type()) holder_ = registry().make(type);
    holder_->fields(inside);
  });
}

Registry<detail::UpdaterHolder>& Updater::registry() {
  static BuiltInUpdaters updaters;
  return updaters;
}

Updater Updater::named(std::string_view type, double learningRate) {
  Updater updater;
  updater.holder_ = registry().make(type);
  updater.holder_->setLearningRate(learningRate);
  return updater;
}

double Sgd::apply(const UpdateStep& step, Context& context) const {
  return updateSgd(step.blocks, step.ranges, step.clip, context);
}

UpdateSettings Sgd::settings() const {
  return {.rule = UpdateSettings::Rule::Sgd};
}

void Sgd::fields(Fields& f) {
  learningRate.field("learningRate", f);
}

void Sgd::validate() const {
  requireLearningRate(kType, learningRate);
}

double Nesterovs::apply(const UpdateStep& step, Context& context) const {
  return updateNesterovs(step.blocks, step.ranges, step.clip, static_cast<float>(momentum), context);
}

UpdateSettings Nesterovs::settings() const {
  return {.rule = UpdateSettings::Rule::Nesterovs, .momentum = momentum};
}

void Nesterovs::fields(Fields& f) {
  learningRate.field("learningRate", f);
  f.field("momentum", momentum);
}

void Nesterovs::validate() const {
  requireLearningRate(kType, learningRate);
  requireFraction(kType, "momentum", momentum);
}

double Adam::apply(const UpdateStep& step, Context& context) const {
  return updateAdam(step.blocks, step.ranges, step.clip,
                    adamScalars(beta1, beta2, epsilon, 0, step.iteration), context);
}

UpdateSettings Adam::settings() const {
  return {.rule = UpdateSettings::Rule::Adam, .beta1 = beta1, .beta2 = beta2, .epsilon = epsilon};
}

void Adam::fields(Fields& f) {
  visitAdam(*this, f);
}

void Adam::validate() const {
  requireAdam(*this);
}

double AdamW::apply(const UpdateStep& step, Context& context) const {
  return updateAdam(step.blocks, step.ranges, step.clip,
                    adamScalars(beta1, beta2, epsilon, weightDecay, step.iteration), context);
}

UpdateSettings AdamW::settings() const {
  return {.rule = UpdateSettings::Rule::Adam,
          .beta1 = beta1,
          .beta2 = beta2,
          .epsilon = epsilon,
          .weightDecay = weightDecay};
}

void AdamW::fields(Fields& f) {
  visitAdam(*this, f);
  f.field("weightDecay", weightDecay);
}

void AdamW::validate() const {
  requireAdam(*this);
  require(std::isfinite(weightDecay) && weightDecay >= 0,
          "updater {}: weightDecay must be finite and not negative, got {}", kType, weightDecay);
}

double RmsProp::apply(const UpdateStep& step, Context& context) const {
  return updateRmsProp(step.blocks, step.ranges, step.clip, decay, static_cast<float>(epsilon), context);
}

UpdateSettings RmsProp::settings() const {
  return {.rule = UpdateSettings::Rule::RmsProp, .decay = decay, .epsilon = epsilon};
}

void RmsProp::fields(Fields& f) {
  learningRate.field("learningRate", f);
  f.field("decay", decay);
  f.field("epsilon", epsilon);
}

void RmsProp::validate() const {
  requireLearningRate(kType, learningRate);
  requireFraction(kType, "decay", decay);
  requireEpsilon(kType, epsilon);
}

double AdaGrad::apply(const UpdateStep& step, Context& context) const {
  return updateAdaGrad(step.blocks, step.ranges, step.clip, static_cast<float>(epsilon), context);
}

UpdateSettings AdaGrad::settings() const {
  return {.rule = UpdateSettings::Rule::AdaGrad, .epsilon = epsilon};
}

void AdaGrad::fields(Fields& f) {
  learningRate.field("learningRate", f);
  f.field("epsilon", epsilon);
}

void AdaGrad::validate() const {
  requireLearningRate(kType, learningRate);
  requireEpsilon(kType, epsilon);
}

}  // namespace muster
