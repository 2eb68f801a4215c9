#include "muster/parallel/strategies/shared_gradients.h"

#include <cstddef>
#include <numeric>
#include <span>

#include "muster/core/ops/linear_combination.h"
#include "muster/core/ops/threshold.h"
#include "muster/parallel/strategies/period.h"
#include "muster/parallel/strategies/saved_numbers.h"

namespace muster {
namespace {

constexpr const char *kUnsent = "residual", *kMeanResidual = "mean residual", *kSender = "sender";

/// A worker's numbers, a view of its block `kSender`.
struct Sender {
  explicit Sender(const Tensor& block) : at(block.data<double>()) {}
  double& threshold() { return at[0]; }  // 0 before the first message
  double& sent() { return at[1]; }       // number of messages
  double& trained() { return at[2]; }    // not 0 if it has trained since the last resynchronisation
  double& weight(std::size_t w) { return at[3 + w]; }  // of worker w since then; equal in all senders
  std::span<const double> weights(std::size_t count) const { return {at + 3, count}; }
  /// @throws SavedStateError for what only a damaged checkpoint can hold.
  void requirePossible(std::size_t workers) {
    detail::requirePossible(threshold() == 0 || detail::isThreshold(threshold()), kSender, threshold(),
                            "as a threshold");
    detail::requireCount(kSender, sent(), "messages");
    for (const double one : weights(workers)) detail::requireNotNegative(kSender, one, "as a weight");
  }

  double* at;
};

/// The workers' messages, as nodes send them to each other.
struct WorkersMessages final : Messages {
  /// The header before the words of a message.
  struct Head {
    float threshold = 0;
    std::uint16_t trained = 0, sent = 0;  // whether the worker has trained, and whether it sends a message
    std::int64_t nonZero = 0;
  };

  std::span<std::byte> head(std::size_t w) override {
    return std::as_writable_bytes(std::span(heads).subspan(w, 1));
  }
  std::span<std::byte> body(std::size_t w) override {
    all[w].expect(heads[w].nonZero, heads[w].threshold);
    return std::as_writable_bytes(
        std::span(all[w].words).first(static_cast<std::size_t>(all[w].wordCount())));
  }
  void arrived(std::size_t w) override { all[w].check(); }

  std::vector<ThresholdMessage> all;  // [worker] written by its worker until all have contributed
  std::vector<Head> heads;            // [worker] over nodes
};

std::string describeAlgorithm(const ThresholdAlgorithm& algorithm) {
  if (const auto* fixed = std::get_if<FixedThreshold>(&algorithm))
    return fmt::format("threshold {}", fixed->threshold);
  if (const auto* target = std::get_if<TargetDensityThreshold>(&algorithm))
    return fmt::format("threshold for a density of {}", target->density);
  return fmt::format("adaptive threshold from {}", std::get<AdaptiveThreshold>(algorithm).initial);
}

class SharedGradientsStrategy final : public Strategy {
 public:
  explicit SharedGradientsStrategy(const SharedGradients& options)
      : options_(options), rule_(detail::asAdaptive(options.thresholdAlgorithm)) {}

  std::string describe() const override {
    const auto every = options_.resynchronizationFrequency;
    const auto when = every == 0 ? std::string() : " and " + Period(every).describe();
    return fmt::format("sharing encoded updates every iteration ({}), whole at the end of each epoch{}",
                       describeAlgorithm(options_.thresholdAlgorithm), when);
  }
  std::vector<StrategyBlock> blocks(int workers) const override {
    if (workers == 1) return {};
    return {{.name = kUnsent,
             .place = StrategyBlock::Place::Replica,
             .zeroUnlessPending = true,
             .meanForOthers = true},
            {.name = kMeanResidual, .dtype = DType::Float64, .saved = false},
            {.name = kSender, .place = StrategyBlock::Place::Replica, .numbers = 3 + workers}};
  }
  StrategyTraits traits(int workers) const override {
    StrategyTraits traits{.updaterState = options_.updaterState, .mayThrow = false};
    if (workers > 1)  // each node has the messages of all
      traits.hostBytes = [workers](std::int64_t parameters) {
        return workers * ThresholdMessage::mostBytes(parameters);
      };
    return traits;
  }
  void begin(const Exchange& exchange) override {
    pending_ = false;
    if (exchange.participants() == 1) return;
    const Tensor& parameters = exchange.block(BlockKind::Parameters).mergedCopy();
    require(parameters.dtype() == DType::Float32, "shared gradients: the parameters must be float32, not {}",
            toString(parameters.dtype()));
    const auto workers = static_cast<std::size_t>(exchange.participants());
    nodes_ = static_cast<std::size_t>(exchange.nodes());
    if (messages_.all.empty()) messages_.all.assign(workers, ThresholdMessage(parameters.elements()));
    messages_.heads.resize(workers);
    drifts_.assign(workers, {});
    encoded_.assign(workers, 0);
    all_ = Fragment::whole(parameters.elements());
    for (const Tensor& block : exchange.strategyBlock(kSender).values) {
      Sender sender(block);
      sender.requirePossible(workers);
      if (sender.threshold() == 0) sender.threshold() = rule_.initial;
      if (sender.trained() != 0) pending_ = true;  // the training was resumed between two resynchronisations
    }
  }
  RoundPlan plan(const TrainingProgress&) override { return {}; }
  void contribute(double weight, MergeOps& ops) override {
    if (messages_.all.empty()) return;
    const auto w = static_cast<std::size_t>(ops.participant());
    Sender sender(ops.own(kSender)[w]);
    Tensor residual = ops.own(kUnsent)[w];
    auto& message = messages_.all[w];
    sender.trained() = 1;
    const auto threshold = static_cast<float>(sender.threshold());
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    // The merged copy holds the replica's values before its step.
    const auto nonZero = accumulateUpdate(parameters.replicas[w], parameters.mergedCopies[w], threshold,
                                          residual, ops.context());
    encoded_[w] = weight > 0;
    if (weight == 0) return message.clear();  // a message would not count: keep all in the residual
    encodeThreshold(residual, threshold, nonZero, message, ops.context());
    countSent(message, sender);
    if (options_.residualClipping == 0) return;
    if (static_cast<std::int64_t>(sender.sent()) % options_.residualClippingFrequency == 0)
      clampElements(residual, threshold * static_cast<float>(options_.residualClipping), ops.context());
  }
  void land(int, const Round& round, MergeOps& ops) override {
    if (messages_.all.empty()) return ops.mergeState(round.weights);
    const auto w = static_cast<std::size_t>(ops.participant());
    const double total = std::accumulate(round.weights.begin(), round.weights.end(), 0.0);
    forEachSender(ops, [&](std::size_t, Sender sender) {
      for (std::size_t v = 0; v < round.weights.size(); ++v) sender.weight(v) += round.weights[v];
    });
    if (total > 0) {
      if (nodes_ > 1) gatherMessages(round, ops);
      applyMessages(round, total, ops);
    }
    const auto every = options_.resynchronizationFrequency;
    const bool resynchronizing = round.last || (every > 0 && round.iteration % every == 0);
    if (w < nodes_) pending_ = !resynchronizing;
    drifts_[w] = {};
    if (resynchronizing) resynchronize(ops);
  }
  bool pending() const override { return pending_; }
  /// The divergence is the drift: |mean residual| / |parameters| at a resynchronisation, otherwise 0.
  MergeReport report() const override {
    return {.kind = messages_.all.empty() ? MergeKind::State
                    : pending_            ? MergeKind::Updates
                                          : MergeKind::Resynchronisation,
            .divergence = relativeDistance(drifts_)};
  }

 private:
  /// Over nodes, sends the participant's message and receives those of the corresponding participants of the
  /// other nodes. Their numbers are kept here, too, so that each node can save those of all.
  void gatherMessages(const Round& round, MergeOps& ops) {
    const auto w = static_cast<std::size_t>(ops.participant());
    auto& message = messages_.all[w];
    const bool sent = encoded_[w] && round.weights[w] > 0;
    if (!sent) message.clear();
    messages_.heads[w] = {.threshold = message.threshold,
                          .trained = Sender(ops.own(kSender)[w]).trained() != 0,
                          .sent = sent,
                          .nonZero = message.nonZero};
    ops.allGather(messages_);
    forEachSender(ops, [&](std::size_t v, Sender sender) {
      if (v == w) return;
      if (messages_.heads[v].trained) sender.trained() = 1;
      if (messages_.heads[v].sent) countSent(messages_.all[v], sender);
    });
  }
  /// Calls `use` for the numbers of the participant and of the corresponding ones of the other nodes.
  template <typename Use>
  void forEachSender(MergeOps& ops, Use use) const {
    const std::size_t first = static_cast<std::size_t>(ops.participant()) / nodes_ * nodes_;
    for (std::size_t v = first; v < first + nodes_; ++v) use(v, Sender(ops.own(kSender)[v]));
  }
  void applyMessages(const Round& round, double total, MergeOps& ops) {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    ops.eachShare(parameters.mergedCopy().elements(), [&](const Share& share) {
      Tensor merged = parameters.mergedCopies[share.workers.front()];
      for (std::size_t v = 0; v < messages_.all.size(); ++v)  // in worker order, whatever the timing
        if (round.weights[v] > 0)
          addDecoded(messages_.all[v], static_cast<float>(round.weights[v] / total), share.slice.begin,
                     share.slice.end, merged, share.context);
    });
    ops.writeBack(parameters.mergedCopies, parameters.replicas, 0, all_);
    const auto w = static_cast<std::size_t>(ops.participant());
    if (round.weights[w] > 0) ops.countBytes(messages_.all[w].bytes());
  }
  /// Counts a message that was sent, and adapts the threshold to it.
  void countSent(const ThresholdMessage& message, Sender sender) const {
    if (message.elements > 0) {
      const double density = static_cast<double>(message.nonZero) / static_cast<double>(message.elements);
      sender.threshold() = detail::adaptedThreshold(rule_, sender.threshold(), density);
    }
    if (options_.residualClipping > 0) sender.sent() += 1;
  }
  void resynchronize(MergeOps& ops) {
    const auto w = static_cast<std::size_t>(ops.participant());
    const auto weights = Sender(ops.own(kSender)[w]).weights(messages_.all.size());
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const auto residual = ops.own(kUnsent), mean = ops.own(kMeanResidual);
    ops.mean(residual, weights, mean, all_);
    drifts_[w] = drift(ops);
    ops.combine(parameters.mergedCopies, {{1, parameters.mergedCopies}, {1, mean}}, all_);
    ops.combine(residual, {}, all_);
    ops.writeBack(parameters.mergedCopies, parameters.replicas, 0, all_);
    ops.mergeOthers(weights);
    forEachSender(ops, [&](std::size_t, Sender sender) {
      for (std::size_t v = 0; v < messages_.all.size(); ++v) sender.weight(v) = 0;
      sender.trained() = 0;
    });
  }
  /// This participant's share of the squares of the mean residual and of the parameters.
  Spread drift(MergeOps& ops) const {
    const Tensor& parameters = ops.block(BlockKind::Parameters).mergedCopy();
    const Tensor& mean = ops.own(kMeanResidual).front();
    Spread spread;
    ops.eachShare(parameters.elements(), [&](const Share& share) {
      if (share.workers.front() != 0) return;  // another device or node, which holds the same values
      const auto [begin, end] = share.slice;
      spread.distance += squaredDistance(mean, Tensor(), begin, end, share.context);
      spread.norm += squaredDistance(parameters, Tensor(), begin, end, share.context);
    });
    return spread;
  }

  const SharedGradients options_;
  const AdaptiveThreshold rule_;
  WorkersMessages messages_;
  std::vector<char> encoded_;   // [worker] whether its last contribution has a message; written by it
  std::vector<Spread> drifts_;  // [worker] for its slice; written while a round ends
  Fragment all_;                // of the parameters
  std::size_t nodes_ = 1;       // of the training
  bool pending_ = false;        // written by this node's first worker while a round ends
};

}  // namespace

std::unique_ptr<Strategy> SharedGradients::make() const {
  return std::make_unique<SharedGradientsStrategy>(*this);
}

}  // namespace muster
