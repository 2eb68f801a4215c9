#include "tests/support/reference_updater.h"

#include "muster/core/base/error.h"

namespace muster::test {
namespace {

/// Collects the numbers and flags of a rule, but not those of its schedule.
struct RuleNumbers final : Fields {
  explicit RuleNumbers(std::map<std::string, double, std::less<>>& into) : all(into) {}
  void field(std::string_view name, bool& value) override { all.emplace(name, value); }
  void field(std::string_view name, double& value) override { all.emplace(name, value); }
  void field(std::string_view, std::int64_t&) override {}
  void field(std::string_view, std::uint64_t&) override {}
  void field(std::string_view, std::string&) override {}
  void field(std::string_view, Shape&) override {}
  void choice(std::string_view, std::size_t&, std::span<const std::string_view>) override {}
  void object(std::string_view name, std::string&, const std::function<void(Fields&)>& inside) override {
    if (name == "rule") inside(*this);
  }
  std::map<std::string, double, std::less<>>& all;
};

}  // namespace

ReferenceUpdater::ReferenceUpdater(const TrainingOptions& options, const StateBlock& parameters)
    : options_(options) {
  RuleNumbers numbers(rule_);
  options_.updater.field("rule", numbers);
  for (const auto& name : options.updater.stateNames())
    state_.push_back(StateBlock::zeros(name, BlockKind::UpdaterState, MergeRule::Average, parameters.segments,
                                       DType::Float64));
}

double ReferenceUpdater::option(std::string_view name) const {
  const auto found = rule_.find(name);
  require(found != rule_.end(), "reference updater: {} has no {}", options_.updater.type(), name);
  return found->second;
}

double ReferenceUpdater::clipScale(const StateBlock& gradients) const {
  double squares = 0;
  for (const auto& segment : gradients.segments->segments)
    if (!segment.frozen)
      for (const double g : gradients.segment(segment).span<double>()) squares += g * g;
  const double norm = std::sqrt(squares);
  return options_.clipNorm > 0 && norm > options_.clipNorm ? options_.clipNorm / norm : 1;
}

double ReferenceUpdater::step(std::int64_t i, double g, double learningRate, std::int64_t iteration) {
  const auto type = options_.updater.type();
  const auto state = [&](std::size_t which) -> double& { return state_[which].values.data<double>()[i]; };
  if (type == Sgd::kType) {
    if (state_.empty()) return learningRate * g;
    state(0) = option("momentum") * state(0) + g;
    return learningRate * state(0);
  }
  if (type == Nesterovs::kType) {
    const double momentum = option("momentum");
    const double kept = option("rateInVelocity") != 0 ? learningRate : 1;
    double& velocity = state(0);
    velocity = momentum * velocity + kept * g;
    return learningRate / kept * (kept * g + momentum * velocity);
  }
  if (type == Adam::kType || type == AdamW::kType) {
    const double beta1 = option("beta1"), beta2 = option("beta2");
    const auto t = static_cast<double>(iteration + 1);
    double &m = state(0), &v = state(1);
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double mean = m / (1 - std::pow(beta1, t)), rest = 1 - std::pow(beta2, t);
    if (option("epsilonHat") != 0)
      return learningRate * mean * std::sqrt(rest) / (std::sqrt(v) + option("epsilon"));
    return learningRate * mean / (std::sqrt(v / rest) + option("epsilon"));
  }
  if (type == RmsProp::kType) {
    const double decay = option("decay");
    double& meanSquare = state(0);
    meanSquare = decay * meanSquare + (1 - decay) * g * g;
    return learningRate * g / (std::sqrt(meanSquare) + option("epsilon"));
  }
  require(type == AdaGrad::kType, "reference updater: it has no {}", type);
  double& sumOfSquares = state(0);
  sumOfSquares += g * g;
  return learningRate * g / (std::sqrt(sumOfSquares) + option("epsilon"));
}

double ReferenceUpdater::apply(StateBlock& parameters, const StateBlock& gradients, std::int64_t iteration,
                               std::int64_t epoch) {
  const double scale = clipScale(gradients);
  const double decay =
      options_.weightDecay + (options_.updater.type() == AdamW::kType ? option("weightDecay") : 0);
  double penalty = 0;
  for (const auto& segment : parameters.segments->segments) {
    if (segment.frozen) continue;
    const double learningRate =
        options_.updater.learningRate().at(iteration, epoch) * segment.learningRateScale;
    for (std::int64_t i = segment.offset; i < segment.offset + segment.shape.elements(); ++i) {
      double& w = parameters.values.data<double>()[i];
      const double before = w;
      double g = gradients.values.data<double>()[i] * scale;
      if (options_.clipValue > 0) g = std::clamp(g, -options_.clipValue, options_.clipValue);
      if (segment.regularised) {
        penalty += options_.l1 * std::abs(before) + options_.l2 / 2 * before * before;
        g += options_.l1 * ((before > 0) - (before < 0)) + options_.l2 * before;
      }
      w -= step(i, g, learningRate, iteration);
      if (segment.regularised) w -= learningRate * decay * before;
    }
  }
  return penalty;
}

}  // namespace muster::test
