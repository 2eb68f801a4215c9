#include "muster/core/nn/step/network_impl.h"
#include "muster/core/nn/step/network_loss.h"

// Passes without training: by whole batches, and by hand.

namespace muster {
namespace {

Batch batchOf(const Tensor& features) {
  Batch batch;
  batch.features.push_back({"features", features});
  return batch;
}

}  // namespace

double Network::score(const Batch& batch) {
  requireNotTrainedElsewhere("score");
  detail::requireLoss(impl_->plan);
  return impl_->passes.loss(batch).score;
}

void Network::output(const Batch& batch, Tensor& out) {
  requireNotTrainedElsewhere("output");
  impl_->passes.output(batch, out);
}

std::optional<StepScore> Network::outputAndLoss(const Batch& batch, Tensor& out) {
  requireNotTrainedElsewhere("output");
  return impl_->passes.outputAndLoss(batch, out);
}

std::vector<Tensor> Network::outputs(const Batch& batch) {
  requireNotTrainedElsewhere("outputs");
  return impl_->passes.outputs(batch);
}

Tensor Network::output(const Tensor& features) {
  Tensor out;
  output(batchOf(features), out);
  return out;
}

void Network::forward(const Tensor& input, Tensor& output, const ForwardPass& pass) {
  requireNotTrainedElsewhere("forward");
  impl_->manual.check(input);
  impl_->normalisation.requireFitted();
  impl_->manual.forward(input, output, pass);
}

void Network::backward(const Tensor& gradOutput, Tensor* gradInput) {
  impl_->manual.backward(gradOutput, gradInput);
}

}  // namespace muster
