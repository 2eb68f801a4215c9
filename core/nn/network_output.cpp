#include <fmt/format.h>

#include <algorithm>

#include "muster/core/device/memory_room.h"
#include "muster/core/nn/step/network_batch.h"
#include "muster/core/nn/step/network_impl.h"
#include "muster/core/nn/step/network_loss.h"
#include "muster/core/ops/activation.h"

namespace muster {
namespace {

/// Computes the prediction of output `index`, including the activation that belongs to its loss, if any.
void predict(const detail::NetworkProgram& program, const std::optional<LossHead>& head, std::size_t index,
             Tensor& out, detail::DeviceCopies& copies, Context& context) {
  const Tensor& predictions = program.output(index);
  out.resize(predictions.shape(), DType::Float32);
  if (!head || !takesLogits(head->loss)) return copies.fetch(predictions, out);
  // In a sequence every time step is a row.
  const Shape rows{predictions.elements() / predictions.shape()[-1], predictions.shape()[-1]};
  Tensor& activated = copies.resultFor(out);
  Tensor flat = activated.reshape(rows);
  activationForward(head->activation, predictions.reshape(rows), flat, context);
  copies.fetch(activated, out);
}

/// Whether the loss is what Evaluation::loss computes from the probabilities.
bool isCrossEntropy(const LossHead& head) {
  return head.loss == Loss::NegativeLogLikelihood && !head.own && head.labelSmoothing == 0 &&
         head.weight == 1 && head.mean == LossMean::Rows;
}

}  // namespace

double Network::score(const Batch& batch) {
  requireNotTrainedElsewhere("score");
  detail::requireLoss(impl_->plan);
  ContextScope scope(context());
  const Batch& there = impl_->there(batch);
  auto& program = impl_->run(there, false);
  return detail::lossOf(impl_->plan, program, there, false, context()).score;
}

std::string_view Network::outputName() const {
  const auto& outputs = impl_->plan.outputs;
  return outputs.size() > 1 ? std::string_view(outputs.front().name) : std::string_view();
}

Batch Network::exampleFeatures() const {
  Batch batch;
  for (const auto& input : impl_->plan.inputs) {
    const DType type = input.indices ? DType::Int64 : DType::Float32;
    requireMemoryRoom(static_cast<double>(input.shape.elements()) * static_cast<double>(sizeOf(type)),
                      "network: an example takes",
                      fmt::format("the shape of its {} is {}", input.name, input.shape.toString()));
    batch.features.push_back({input.name, Tensor::zeros(input.shape.prepend(1), type)});
  }
  return batch;
}

void Network::output(const Batch& batch, Tensor& out) {
  requireNotTrainedElsewhere("output");
  ContextScope scope(context());
  const auto& program = impl_->run(impl_->there(batch), false);
  predict(program, impl_->plan.outputs.front().head, 0, out, impl_->copies, context());
}

std::optional<StepScore> Network::outputAndLoss(const Batch& batch, Tensor& out) {
  requireNotTrainedElsewhere("output");
  const auto& outputs = impl_->plan.outputs;
  const bool told = std::ranges::all_of(outputs, [](const auto& one) { return one.head.has_value(); }) &&
                    batch.labels.size() >= outputs.size() &&
                    !(outputs.size() == 1 && isCrossEntropy(*outputs.front().head));
  if (!told) {
    output(batch, out);
    return {};
  }
  ContextScope scope(context());
  const Batch& there = impl_->there(batch);
  auto& program = impl_->run(there, false);
  const StepScore loss = detail::lossOf(impl_->plan, program, there, false, context());
  predict(program, outputs.front().head, 0, out, impl_->copies, context());
  return loss;
}

Task Network::task() const {
  if (impl_->plan.outputs.empty()) return Task::Classification;
  const auto& output = impl_->plan.outputs.front();
  if (!output.head || output.head->activation == Activation::Softmax) return Task::Classification;
  if (output.head->loss != Loss::BinaryCrossEntropy) return Task::Regression;
  return impl_->plan.shapeOf(output.value)[-1] > 1 ? Task::Labels : Task::Classification;
}

std::vector<Tensor> Network::outputs(const Batch& batch) {
  requireNotTrainedElsewhere("outputs");
  ContextScope scope(context());
  const auto& program = impl_->run(impl_->there(batch), false);
  const auto& outputs = impl_->plan.outputs;
  std::vector<Tensor> all(outputs.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    predict(program, outputs[i].head, i, all[i], impl_->copies, context());
  return all;
}

Tensor Network::output(const Tensor& features) {
  Batch batch;
  batch.features.push_back({"features", features});
  Tensor out;
  output(batch, out);
  return out;
}

}  // namespace muster
