#include "muster/parallel/averaging/shared_gradients.h"

#include <algorithm>
#include <cstring>

#include "muster/core/base/error.h"
#include "muster/core/ops/threshold.h"

namespace muster {
namespace {

const SharedBlock& parametersOf(const Collective& collective) {
  const auto blocks = collective.blocks();
  return *std::ranges::find(blocks, BlockKind::Parameters, &SharedBlock::kind);
}

}  // namespace

/// What a worker has not sent yet, and what it sends.
struct SharedGradients::Sender {
  Sender(std::int64_t elements, const ThresholdAlgorithm& algorithm)
      : residual(Tensor::zeros({elements})), message(elements), rule(algorithm) {}

  Tensor residual;
  ThresholdMessage message;
  ThresholdRule rule;
  std::int64_t sent = 0;  // messages
};

SharedGradients::SharedGradients(SharedGradientsOptions options) : options_(std::move(options)) {
  options_.validate();
}

SharedGradients::~SharedGradients() = default;

void SharedGradients::begin(const Collective& collective) {
  pending_ = false;
  if (collective.participants() == 1) return;
  const Tensor& values = parametersOf(collective).shadow;
  require(values.dtype() == DType::Float32, "shared gradients: the parameters must be float32, not {}",
          toString(values.dtype()));
  for (auto& sender : senders_) std::memset(sender->residual.raw(), 0, sender->residual.bytes());
  if (!senders_.empty()) return;
  for (int w = 0; w < collective.participants(); ++w) {
    senders_.push_back(std::make_unique<Sender>(values.elements(), options_.thresholdAlgorithm));
    messages_.push_back(&senders_.back()->message);
    residuals_.push_back(senders_.back()->residual);
  }
  equalWeights_.assign(senders_.size(), 1);
  drifts_.resize(senders_.size());
}

void SharedGradients::contribute(int participant, Collective& collective, Context&) {
  if (senders_.empty()) return;
  auto& [residual, message, rule, sent] = *senders_[participant];
  const SharedBlock& parameters = parametersOf(collective);
  const float threshold = rule.threshold();
  // The shadow is what the replica was before its step.
  const auto nonZero =
      accumulateUpdate(parameters.replicas[participant], parameters.shadow, threshold, residual);
  encodeThreshold(residual, threshold, nonZero, message);
  if (message.elements > 0) rule.adapt(static_cast<double>(nonZero) / static_cast<double>(message.elements));
  if (options_.residualClipping > 0 && ++sent % options_.residualClippingFrequency == 0)
    clampElements(residual, threshold * static_cast<float>(options_.residualClipping));
}

bool SharedGradients::resynchronizes(const Round& round) const {
  const auto every = options_.resynchronizationFrequency;
  return round.last || (every > 0 && round.iteration % every == 0);
}

std::int64_t SharedGradients::meet(int participant, const Round& round, Collective& collective,
                                   Context& context) {
  if (senders_.empty()) {
    for (const auto& block : collective.blocks())
      if (block.kind != BlockKind::Gradients) collective.merge(participant, block, round.weights, context);
    return 0;
  }
  std::int64_t bytes = 0;
  if (std::ranges::any_of(round.weights, [](double weight) { return weight > 0; }))
    bytes += collective.addEncoded(participant, parametersOf(collective), messages_, round.weights);
  const bool resynchronizing = resynchronizes(round);
  if (participant == 0) pending_ = !resynchronizing;
  drifts_[participant] = {};
  return resynchronizing ? bytes + resynchronize(participant, round, collective, context) : bytes;
}

std::int64_t SharedGradients::resynchronize(int participant, const Round& round, Collective& collective,
                                            Context& context) {
  const bool trained = std::ranges::any_of(round.weights, [](double weight) { return weight > 0; });
  const std::span<const double> weights = trained ? round.weights : equalWeights_;
  std::int64_t bytes = collective.addDense(participant, parametersOf(collective), residuals_, equalWeights_,
                                           drifts_[participant]);
  for (const auto& block : collective.blocks())
    if (block.kind == BlockKind::UpdaterState || block.kind == BlockKind::Statistics)
      bytes += collective.merge(participant, block, weights, context);
  return bytes;
}

std::string SharedGradients::describe() const {
  const auto every = options_.resynchronizationFrequency;
  const auto when = every == 0 ? std::string() : fmt::format(" and every {} iterations", every);
  return fmt::format("sharing encoded updates every iteration ({}), whole at the end of each epoch{}",
                     options_.describe(), when);
}

}  // namespace muster
