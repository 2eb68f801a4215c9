#include "muster/parallel/strategies/shared_gradients.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/ops/threshold.h"

namespace muster {

/// What a worker has not sent yet, and what it sends.
struct SharedGradients::Sender {
  Sender(const Exchange& exchange, std::int64_t elements, Device device, const ThresholdAlgorithm& algorithm)
      : residual(Tensor::zeros({elements}, DType::Float32, device)),
        message(elements),
        rule(algorithm),
        weights(static_cast<std::size_t>(exchange.participants())) {}

  Tensor residual;
  ThresholdMessage message;
  ThresholdRule rule;
  std::int64_t sent = 0;        // messages
  std::vector<double> weights;  // [worker] since the last resynchronisation, alike in all senders
  bool used = false;            // since then
};

SharedGradients::SharedGradients(SharedGradientsOptions options) : options_(std::move(options)) {
  options_.validate();
}

SharedGradients::~SharedGradients() = default;

void SharedGradients::begin(const Exchange& exchange) {
  pending_ = false;
  if (exchange.participants() == 1) return;
  const auto used = [](const auto& sender) { return sender->used; };
  // After a failure thresholds and residuals are of a state that nobody has any more.
  if (!senders_.empty() && std::ranges::none_of(senders_, used)) return;
  const SharedBlock& parameters = exchange.block(BlockKind::Parameters);
  const Tensor& values = parameters.shadow;
  require(values.dtype() == DType::Float32, "shared gradients: the parameters must be float32, not {}",
          toString(values.dtype()));
  std::vector<std::unique_ptr<Sender>> senders;
  std::vector<const ThresholdMessage*> messages;
  std::vector<Tensor> residuals;
  for (int w = 0; w < exchange.participants(); ++w) {
    senders.push_back(std::make_unique<Sender>(exchange, values.elements(), parameters.replicas[w].device(),
                                               options_.thresholdAlgorithm));
    messages.push_back(&senders.back()->message);
    residuals.push_back(senders.back()->residual);
  }
  drifts_.assign(senders.size(), {});
  senders_ = std::move(senders);
  messages_ = std::move(messages);
  residuals_ = std::move(residuals);
}

void SharedGradients::contribute(int participant, double weight, Exchange& exchange, Context& context) {
  if (senders_.empty()) return;
  auto& sender = *senders_[participant];
  sender.used = true;
  const SharedBlock& parameters = exchange.block(BlockKind::Parameters);
  const float threshold = sender.rule.threshold();
  // The shadow is what the replica was before its step.
  const auto nonZero = accumulateUpdate(parameters.replicas[participant], parameters.shadows[participant],
                                        threshold, sender.residual, context);
  if (weight == 0) return sender.message.clear();  // it would not count: all stays in the residual
  encodeThreshold(sender.residual, threshold, nonZero, sender.message, context);
  const auto elements = sender.message.elements;
  if (elements > 0) sender.rule.adapt(static_cast<double>(nonZero) / static_cast<double>(elements));
  if (options_.residualClipping > 0 && ++sender.sent % options_.residualClippingFrequency == 0)
    clampElements(sender.residual, threshold * static_cast<float>(options_.residualClipping), context);
}

bool SharedGradients::resynchronizes(const Round& round) const {
  const auto every = options_.resynchronizationFrequency;
  return round.last || (every > 0 && round.iteration % every == 0);
}

std::int64_t SharedGradients::meet(int participant, const Round& round, Exchange& exchange,
                                   Context& context) {
  if (senders_.empty()) return exchange.mergeState(participant, round.weights, context);
  auto& sender = *senders_[participant];
  std::int64_t bytes = 0;
  double total = 0;
  for (std::size_t w = 0; w < round.weights.size(); ++w) {
    sender.weights[w] += round.weights[w];
    total += round.weights[w];
  }
  if (total > 0)
    bytes += exchange.addEncoded(participant, exchange.block(BlockKind::Parameters), messages_, round.weights,
                                 context);
  const bool resynchronizing = resynchronizes(round);
  if (participant == 0) pending_ = !resynchronizing;
  drifts_[participant] = {};
  return resynchronizing ? bytes + resynchronize(participant, exchange, context) : bytes;
}

std::int64_t SharedGradients::resynchronize(int participant, Exchange& exchange, Context& context) {
  auto& sender = *senders_[participant];
  std::int64_t bytes = exchange.addDense(participant, exchange.block(BlockKind::Parameters), residuals_,
                                         sender.weights, context, drifts_[participant]);
  for (const auto& block : exchange.blocks())
    if (block.kind == BlockKind::UpdaterState || block.kind == BlockKind::Statistics)
      bytes += exchange.merge(participant, block, sender.weights, context);
  std::ranges::fill(sender.weights, 0);
  sender.used = false;
  return bytes;
}

std::string SharedGradients::describe() const {
  const auto every = options_.resynchronizationFrequency;
  const auto when = every == 0 ? std::string() : fmt::format(" and every {} iterations", every);
  return fmt::format("sharing encoded updates every iteration ({}), whole at the end of each epoch{}",
                     options_.describe(), when);
}

}  // namespace muster
