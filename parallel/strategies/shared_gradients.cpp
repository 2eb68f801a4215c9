#include "muster/parallel/strategies/shared_gradients.h"

#include <algorithm>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/ops/linear_combination.h"
#include "muster/core/ops/threshold.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace muster {
namespace {

constexpr double kMostClipping = 1e6;  // in thresholds

constexpr std::string_view kResidual = "residual", kMeanResidual = "mean residual", kSender = "sender";

/// A worker's numbers, a view of its block `kSender`.
struct Sender {
  explicit Sender(const Tensor& block) : at(block.data<double>()) {}
  double& threshold() { return at[0]; }  // 0 before the first message
  double& sent() { return at[1]; }       // number of messages
  double& trained() { return at[2]; }    // not 0 if it has trained since the last resynchronisation
  double& weight(std::size_t w) { return at[3 + w]; }  // of worker w since then; equal in all senders
  std::span<const double> weights(std::size_t count) const { return {at + 3, count}; }

  double* at;
};

class SharedGradientsStrategy final : public Strategy {
 public:
  explicit SharedGradientsStrategy(const SharedGradients& options) : options_(options) {}

  std::string whyNotOverNodes() const override { return "encoded changes are not sent to other nodes yet"; }
  std::string describe() const override;
  std::vector<StrategyBlock> blocks(int workers) const override;
  UpdaterState updaterState() const override { return options_.updaterState; }
  bool mayThrow() const override { return false; }
  void begin(const Exchange& exchange) override;
  RoundPlan plan(const TrainingProgress&) override { return {}; }
  void contribute(double weight, Verbs& verbs) override;
  bool stage(Exchange& exchange, Context& context) override {
    return messages_.empty() && exchange.stage(context);
  }
  void land(int, const Round& round, Verbs& verbs) override;
  bool pending() const override { return pending_; }
  MergeKind kind() const override { return messages_.empty() ? MergeKind::State : kind_; }
  /// The drift: |mean residual| / |parameters| at a resynchronisation, otherwise 0.
  double divergence() const override { return relativeDistance(drifts_); }

 private:
  void applyMessages(const Round& round, Verbs& verbs);
  bool resynchronizes(const Round& round) const;
  void resynchronize(Verbs& verbs);
  /// This participant's share of the squares of the mean residual and of the parameters.
  Spread drift(Verbs& verbs) const;

  const SharedGradients options_;
  std::vector<ThresholdMessage> messages_;  // [worker] written by its worker until all have contributed
  std::vector<Spread> drifts_;              // [worker] for its slice; written while a round ends
  Fragment all_;                            // of the parameters
  bool pending_ = false;                    // written by worker 0 while a round ends
  MergeKind kind_ = MergeKind::Updates;     // like pending_
};

std::string SharedGradientsStrategy::describe() const {
  const auto every = options_.resynchronizationFrequency;
  const auto when = every == 0 ? std::string() : fmt::format(" and every {} iterations", every);
  return fmt::format("sharing encoded updates every iteration ({}), whole at the end of each epoch{}",
                     options_.describe(), when);
}

std::vector<StrategyBlock> SharedGradientsStrategy::blocks(int workers) const {
  if (workers == 1) return {};
  return {{.name = std::string(kResidual), .place = StrategyBlock::Place::Replica},
          {.name = std::string(kMeanResidual), .dtype = DType::Float64, .saved = false},
          {.name = std::string(kSender), .place = StrategyBlock::Place::Replica, .numbers = 3 + workers}};
}

void SharedGradientsStrategy::begin(const Exchange& exchange) {
  pending_ = false;
  if (exchange.participants() == 1) return;
  const Tensor& parameters = exchange.block(BlockKind::Parameters).mergedCopy();
  require(parameters.dtype() == DType::Float32, "shared gradients: the parameters must be float32, not {}",
          toString(parameters.dtype()));
  const auto workers = static_cast<std::size_t>(exchange.participants());
  if (messages_.empty()) messages_.assign(workers, ThresholdMessage(parameters.elements()));
  drifts_.assign(workers, {});
  all_ = Fragment::whole(parameters.elements());
  for (const Tensor& block : exchange.strategyBlock(kSender).values) {
    Sender sender(block);
    if (sender.threshold() == 0) sender.threshold() = ThresholdRule(options_.thresholdAlgorithm).threshold();
    if (sender.trained() != 0) pending_ = true;  // the training was resumed between two resynchronisations
  }
}

void SharedGradientsStrategy::contribute(double weight, Verbs& verbs) {
  if (messages_.empty()) return;
  const auto w = static_cast<std::size_t>(verbs.participant());
  Sender sender(verbs.own(kSender)[w]);
  Tensor residual = verbs.own(kResidual)[w];
  auto& message = messages_[w];
  sender.trained() = 1;
  ThresholdRule rule(options_.thresholdAlgorithm);
  rule.setThreshold(sender.threshold());
  const auto threshold = static_cast<float>(rule.threshold());
  const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
  // The merged copy holds the replica's values before its step.
  const auto nonZero = accumulateUpdate(parameters.replicas[w], parameters.mergedCopies[w], threshold,
                                        residual, verbs.context());
  if (weight == 0) return message.clear();  // a message would not count: keep all in the residual
  encodeThreshold(residual, threshold, nonZero, message, verbs.context());
  if (message.elements > 0) rule.adapt(static_cast<double>(nonZero) / static_cast<double>(message.elements));
  sender.threshold() = rule.threshold();
  if (options_.residualClipping == 0) return;
  sender.sent() += 1;
  if (static_cast<std::int64_t>(sender.sent()) % options_.residualClippingFrequency == 0)
    clampElements(residual, threshold * static_cast<float>(options_.residualClipping), verbs.context());
}

void SharedGradientsStrategy::land(int, const Round& round, Verbs& verbs) {
  if (messages_.empty()) return verbs.mergeState(round.weights);
  const auto w = static_cast<std::size_t>(verbs.participant());
  Sender sender(verbs.own(kSender)[w]);
  double total = 0;
  for (std::size_t v = 0; v < round.weights.size(); ++v) {
    sender.weight(v) += round.weights[v];
    total += round.weights[v];
  }
  if (total > 0) applyMessages(round, verbs);
  const bool resynchronizing = resynchronizes(round);
  if (verbs.participant() == 0) {
    pending_ = !resynchronizing;
    kind_ = resynchronizing ? MergeKind::Resynchronisation : MergeKind::Updates;
  }
  drifts_[w] = {};
  if (resynchronizing) resynchronize(verbs);
}

void SharedGradientsStrategy::applyMessages(const Round& round, Verbs& verbs) {
  const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
  double total = 0;
  for (const double weight : round.weights) total += weight;
  verbs.eachShare(parameters.mergedCopy().elements(), [&](const Share& share) {
    Tensor merged = parameters.mergedCopies[share.workers.front()];
    for (std::size_t v = 0; v < messages_.size(); ++v)  // in worker order, whatever the timing
      if (round.weights[v] > 0)
        addDecoded(messages_[v], static_cast<float>(round.weights[v] / total), share.slice.begin,
                   share.slice.end, merged, share.context);
  });
  verbs.writeBack(parameters.mergedCopies, parameters.replicas, 0, all_);
  const auto w = static_cast<std::size_t>(verbs.participant());
  if (round.weights[w] > 0) verbs.countBytes(messages_[w].bytes());
}

bool SharedGradientsStrategy::resynchronizes(const Round& round) const {
  const auto every = options_.resynchronizationFrequency;
  return round.last || (every > 0 && round.iteration % every == 0);
}

void SharedGradientsStrategy::resynchronize(Verbs& verbs) {
  const auto w = static_cast<std::size_t>(verbs.participant());
  Sender sender(verbs.own(kSender)[w]);
  const auto weights = sender.weights(messages_.size());
  const SharedBlock& parameters = verbs.block(BlockKind::Parameters);
  const auto residual = verbs.own(kResidual), mean = verbs.own(kMeanResidual);
  verbs.mean(residual, weights, mean, all_);
  drifts_[w] = drift(verbs);
  verbs.combine(parameters.mergedCopies, {{1, parameters.mergedCopies}, {1, mean}}, all_);
  verbs.combine(residual, {}, all_);
  verbs.writeBack(parameters.mergedCopies, parameters.replicas, 0, all_);
  verbs.mergeOthers(weights);
  for (std::size_t v = 0; v < messages_.size(); ++v) sender.weight(v) = 0;
  sender.trained() = 0;
}

Spread SharedGradientsStrategy::drift(Verbs& verbs) const {
  const Tensor& parameters = verbs.block(BlockKind::Parameters).mergedCopy();
  const Tensor& mean = verbs.own(kMeanResidual).front();
  Spread spread;
  verbs.eachShare(parameters.elements(), [&](const Share& share) {
    if (share.workers.front() != 0) return;  // another device, which holds the same values
    const auto [begin, end] = share.slice;
    spread.distance += squaredDistance(mean, Tensor(), begin, end, share.context);
    spread.norm += squaredDistance(parameters, Tensor(), begin, end, share.context);
  });
  return spread;
}

}  // namespace

void SharedGradients::validate() const {
  muster::validate(thresholdAlgorithm);
  muster::validate(updaterState);
  require(residualClipping == 0 || (residualClipping >= 1 && residualClipping <= kMostClipping),
          "residualClipping must be 0 (off) or between 1 and {} thresholds, got {}", kMostClipping,
          residualClipping);
  require(residualClippingFrequency >= 1, "residualClippingFrequency must be at least 1, got {}",
          residualClippingFrequency);
  require(resynchronizationFrequency >= 0, "resynchronizationFrequency cannot be negative, got {}",
          resynchronizationFrequency);
}

std::unique_ptr<Strategy> SharedGradients::make() const {
  return std::make_unique<SharedGradientsStrategy>(*this);
}

std::string SharedGradients::describe() const {
  return muster::describe(thresholdAlgorithm);
}

void SharedGradients::fields(Fields& f) {
  field("threshold", thresholdAlgorithm, f);
  f.field("residualClipping", residualClipping);
  f.field("residualClippingFrequency", residualClippingFrequency);
  f.field("resynchronizationFrequency", resynchronizationFrequency);
  f.field("updaterState", updaterState);
}

std::vector<NamedStrategy> SharedGradients::named(int) {
  return {{"shared", "every iteration each worker sends the large elements of its update", "Strom 2015",
           SharedGradients{}}};
}

}  // namespace muster
