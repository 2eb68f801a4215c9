#include "muster/core/nn/step/batch_passes.h"

#include <algorithm>

#include "muster/core/nn/step/network_batch.h"
#include "muster/core/nn/step/network_loss.h"
#include "muster/core/ops/activation.h"

namespace muster::detail {
namespace {

/// Whether the loss is what Evaluation::loss computes from the probabilities.
bool isCrossEntropy(const LossHead& head) {
  return head.loss == Loss::NegativeLogLikelihood && !head.own && head.labelSmoothing == 0 &&
         head.weight == 1 && head.mean == LossMean::Rows;
}

}  // namespace

StepScore BatchPasses::gradient(const Batch& batch) {
  const Batch& onDevice = there(batch);
  auto& program = forward(onDevice, true);
  requireLabelValues(plan_, batch);
  const StepScore score = lossOf(plan_, program, onDevice, true, context_);
  StepInfo info = infoOf(onDevice, seed_, true);
  info.lossWeight = score.weight;
  program.backward(info);
  return score;
}

StepScore BatchPasses::loss(const Batch& batch) {
  ContextScope scope(context_);
  const Batch& onDevice = there(batch);
  auto& program = forward(onDevice, false);
  requireLabelValues(plan_, batch);
  return lossOf(plan_, program, onDevice, false, context_);
}

void BatchPasses::output(const Batch& batch, Tensor& out) {
  ContextScope scope(context_);
  predict(forward(there(batch), false), 0, out);
}

std::optional<StepScore> BatchPasses::outputAndLoss(const Batch& batch, Tensor& out) {
  ContextScope scope(context_);
  const Batch& onDevice = there(batch);
  auto& program = forward(onDevice, false);
  std::optional<StepScore> score;
  if (computesLoss(batch)) {
    requireLabelValues(plan_, batch);
    score = lossOf(plan_, program, onDevice, false, context_);
  }
  predict(program, 0, out);
  return score;
}

std::vector<Tensor> BatchPasses::outputs(const Batch& batch) {
  ContextScope scope(context_);
  const auto& program = forward(there(batch), false);
  std::vector<Tensor> all(plan_.outputs.size());
  for (std::size_t i = 0; i < all.size(); ++i) predict(program, i, all[i]);
  return all;
}

const Batch& BatchPasses::there(const Batch& batch) {
  if (!context_.device().isCpu()) return steps_.fetch(batch);
  if (!batch.namesRows()) return batch;
  batch.gatherInto(gathered_);
  return gathered_;
}

NetworkProgram& BatchPasses::forward(const Batch& batch, bool training) {
  findFeatures(plan_, batch, features_);
  normalisation_.requireFitted();
  auto& program = *programs_.get(plan_, sizeOf(plan_, features_), training, context_).program;
  program.forward(features_, infoOf(batch, seed_, training));
  return program;
}

bool BatchPasses::computesLoss(const Batch& batch) const {
  const auto& outputs = plan_.outputs;
  return std::ranges::all_of(outputs, [](const auto& one) { return one.head.has_value(); }) &&
         batch.labels.size() >= outputs.size() &&
         !(outputs.size() == 1 && isCrossEntropy(*outputs.front().head));
}

/// With the activation that belongs to the output's loss, if any.
void BatchPasses::predict(const NetworkProgram& program, std::size_t index, Tensor& out) {
  const Tensor& predictions = program.output(index);
  const auto& head = plan_.outputs[index].head;
  out.resize(predictions.shape(), DType::Float32);
  if (!head || !takesLogits(head->loss)) return copies_.fetch(predictions, out);
  // In a sequence every time step is a row.
  const Shape rows{predictions.elements() / predictions.shape()[-1], predictions.shape()[-1]};
  Tensor& activated = copies_.resultFor(out);
  Tensor flat = activated.reshape(rows);
  activationForward(head->activation, predictions.reshape(rows), flat, context_);
  copies_.fetch(activated, out);
}

}  // namespace muster::detail
