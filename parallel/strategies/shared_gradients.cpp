#include "muster/parallel/strategies/shared_gradients.h"

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/ops/linear_combination.h"
#include "muster/core/ops/threshold.h"
#include "muster/parallel/strategies/saved_numbers.h"

namespace muster {
namespace {

constexpr std::string_view kUnsent = "residual", kMeanResidual = "mean residual", kSender = "sender";

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
    detail::requirePossible(threshold() == 0 || ThresholdRule::possible(threshold()), kSender, threshold(),
                            "as a threshold");
    detail::requireCount(kSender, sent(), "messages");
    for (const double one : weights(workers)) detail::requireNotNegative(kSender, one, "as a weight");
  }

  double* at;
};

/// The workers' messages, as nodes send them to each other.
class WorkersMessages final : public Messages {
 public:
  /// The header before the words of a message.
  struct Head {
    float threshold = 0;
    std::uint16_t trained = 0, sent = 0;  // whether the worker has trained, and whether it sends a message
    std::int64_t nonZero = 0;
  };

  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  ThresholdMessage& operator[](std::size_t w) { return all_[w]; }
  const Head& headOf(std::size_t w) const { return heads_[w]; }
  void allocate(std::size_t workers, std::int64_t elements) {
    all_.assign(workers, ThresholdMessage(elements));
    heads_.resize(workers);
  }
  void writeHead(std::size_t w, bool trained, bool sent) {
    if (!sent) all_[w].clear();
    heads_[w] = {.threshold = all_[w].threshold,
                 .trained = static_cast<std::uint16_t>(trained),
                 .sent = static_cast<std::uint16_t>(sent),
                 .nonZero = all_[w].nonZero};
  }

  std::span<std::byte> head(std::size_t w) override {
    return std::as_writable_bytes(std::span(heads_).subspan(w, 1));
  }
  std::span<std::byte> body(std::size_t w) override {
    all_[w].expect(heads_[w].nonZero, heads_[w].threshold);
    return std::as_writable_bytes(
        std::span(all_[w].words).first(static_cast<std::size_t>(all_[w].wordCount())));
  }
  void arrived(std::size_t w) override { all_[w].check(); }

 private:
  std::vector<ThresholdMessage> all_;  // [worker] written by its worker until all have contributed
  std::vector<Head> heads_;            // [worker] over nodes
};

class SharedGradientsStrategy final : public Strategy {
 public:
  explicit SharedGradientsStrategy(const SharedGradients& options) : options_(options) {}

  std::string describe() const override {
    const auto every = options_.resynchronizationFrequency;
    const auto when = every == 0   ? std::string()
                      : every == 1 ? std::string(" and every iteration")
                                   : fmt::format(" and every {} iterations", every);
    return fmt::format("sharing encoded updates every iteration ({}), whole at the end of each epoch{}",
                       options_.describe(), when);
  }
  std::vector<StrategyBlock> blocks(int workers) const override {
    if (workers == 1) return {};
    return {{.name = std::string(kUnsent),
             .place = StrategyBlock::Place::Replica,
             .zeroUnlessPending = true,
             .meanForOthers = true},
            {.name = std::string(kMeanResidual), .dtype = DType::Float64, .saved = false},
            {.name = std::string(kSender), .place = StrategyBlock::Place::Replica, .numbers = 3 + workers}};
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
    if (messages_.empty()) messages_.allocate(workers, parameters.elements());
    drifts_.assign(workers, {});
    encoded_.assign(workers, 0);
    all_ = Fragment::whole(parameters.elements());
    for (const Tensor& block : exchange.strategyBlock(kSender).values) {
      Sender sender(block);
      sender.requirePossible(workers);
      if (sender.threshold() == 0)
        sender.threshold() = ThresholdRule(options_.thresholdAlgorithm).threshold();
      if (sender.trained() != 0) pending_ = true;  // the training was resumed between two resynchronisations
    }
  }
  RoundPlan plan(const TrainingProgress&) override { return {}; }
  void contribute(double weight, MergeOps& ops) override {
    if (messages_.empty()) return;
    const auto w = static_cast<std::size_t>(ops.participant());
    Sender sender(ops.own(kSender)[w]);
    Tensor residual = ops.own(kUnsent)[w];
    auto& message = messages_[w];
    sender.trained() = 1;
    ThresholdRule rule(options_.thresholdAlgorithm);
    rule.setThreshold(sender.threshold());
    const auto threshold = static_cast<float>(rule.threshold());
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
    if (messages_.empty()) return ops.mergeState(round.weights);
    const auto w = static_cast<std::size_t>(ops.participant());
    const double total = std::accumulate(round.weights.begin(), round.weights.end(), 0.0);
    forEachSender(ops, [&](std::size_t, Sender sender) {
      for (std::size_t v = 0; v < round.weights.size(); ++v) sender.weight(v) += round.weights[v];
    });
    if (total > 0) {
      if (nodes_ > 1) gatherMessages(round, ops);
      applyMessages(round, ops);
    }
    const bool resynchronizing = resynchronizes(round);
    if (w < nodes_) {
      pending_ = !resynchronizing;
      kind_ = resynchronizing ? MergeKind::Resynchronisation : MergeKind::Updates;
    }
    drifts_[w] = {};
    if (resynchronizing) resynchronize(ops);
  }
  bool pending() const override { return pending_; }
  /// The divergence is the drift: |mean residual| / |parameters| at a resynchronisation, otherwise 0.
  MergeReport report() const override {
    return {.kind = messages_.empty() ? MergeKind::State : kind_, .divergence = relativeDistance(drifts_)};
  }

 private:
  /// Over nodes, sends the participant's message and receives those of the corresponding participants of the
  /// other nodes. Their numbers are kept here, too, so that each node can save those of all.
  void gatherMessages(const Round& round, MergeOps& ops) {
    const auto w = static_cast<std::size_t>(ops.participant());
    messages_.writeHead(w, Sender(ops.own(kSender)[w]).trained() != 0, encoded_[w] && round.weights[w] > 0);
    ops.allGather(messages_);
    forEachSender(ops, [&](std::size_t v, Sender sender) {
      if (v == w) return;
      if (messages_.headOf(v).trained) sender.trained() = 1;
      if (messages_.headOf(v).sent) countSent(messages_[v], sender);
    });
  }
  /// Calls `use` for the numbers of the participant and of the corresponding ones of the other nodes.
  template <typename Use>
  void forEachSender(MergeOps& ops, Use use) const {
    const std::size_t first = static_cast<std::size_t>(ops.participant()) / nodes_ * nodes_;
    for (std::size_t v = first; v < first + nodes_; ++v) use(v, Sender(ops.own(kSender)[v]));
  }
  void applyMessages(const Round& round, MergeOps& ops) {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    double total = 0;
    for (const double weight : round.weights) total += weight;
    ops.eachShare(parameters.mergedCopy().elements(), [&](const Share& share) {
      Tensor merged = parameters.mergedCopies[share.workers.front()];
      for (std::size_t v = 0; v < messages_.size(); ++v)  // in worker order, whatever the timing
        if (round.weights[v] > 0)
          addDecoded(messages_[v], static_cast<float>(round.weights[v] / total), share.slice.begin,
                     share.slice.end, merged, share.context);
    });
    ops.writeBack(parameters.mergedCopies, parameters.replicas, 0, all_);
    const auto w = static_cast<std::size_t>(ops.participant());
    if (round.weights[w] > 0) ops.countBytes(messages_[w].bytes());
  }
  /// Counts a message that was sent, and adapts the threshold to it.
  void countSent(const ThresholdMessage& message, Sender sender) const {
    ThresholdRule rule(options_.thresholdAlgorithm);
    rule.setThreshold(sender.threshold());
    if (message.elements > 0)
      rule.adapt(static_cast<double>(message.nonZero) / static_cast<double>(message.elements));
    sender.threshold() = rule.threshold();
    if (options_.residualClipping > 0) sender.sent() += 1;
  }
  bool resynchronizes(const Round& round) const {
    const auto every = options_.resynchronizationFrequency;
    return round.last || (every > 0 && round.iteration % every == 0);
  }
  void resynchronize(MergeOps& ops) {
    const auto w = static_cast<std::size_t>(ops.participant());
    const auto weights = Sender(ops.own(kSender)[w]).weights(messages_.size());
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const auto residual = ops.own(kUnsent), mean = ops.own(kMeanResidual);
    ops.mean(residual, weights, mean, all_);
    drifts_[w] = drift(ops);
    ops.combine(parameters.mergedCopies, {{1, parameters.mergedCopies}, {1, mean}}, all_);
    ops.combine(residual, {}, all_);
    ops.writeBack(parameters.mergedCopies, parameters.replicas, 0, all_);
    ops.mergeOthers(weights);
    forEachSender(ops, [&](std::size_t, Sender sender) {
      for (std::size_t v = 0; v < messages_.size(); ++v) sender.weight(v) = 0;
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
  WorkersMessages messages_;
  std::vector<char> encoded_;   // [worker] whether its last contribution has a message; written by it
  std::vector<Spread> drifts_;  // [worker] for its slice; written while a round ends
  Fragment all_;                // of the parameters
  std::size_t nodes_ = 1;       // of the training
  bool pending_ = false;        // written by this node's first worker while a round ends
  MergeKind kind_ = MergeKind::Updates;  // like pending_
};

}  // namespace

std::unique_ptr<Strategy> SharedGradients::make() const {
  return std::make_unique<SharedGradientsStrategy>(*this);
}

}  // namespace muster
