#include "muster/core/nn/step/network_impl.h"
#include "muster/core/nn/step/network_loss.h"

namespace muster {

using detail::StepWork;

StepTicket Network::gradient(const Batch& batch) {
  detail::requireLoss(impl_->plan);
  impl_->normalisation.requireFitted();
  ContextScope scope(context());
  const std::int64_t slices = trainingOptions().accumulate;
  if (slices == 1) return impl_->gradient(batch);
  return StepTicket(impl_->slices.gradient(batch, slices, block(BlockKind::Gradients).values, context(),
                                           [this](const Batch& slice) { return impl_->gradient(slice); }));
}

StepTicket Network::Impl::gradient(const Batch& batch) {
  return enqueuesSteps ? steps.enqueue(batch, StepWork::Gradient) : StepTicket(passes.gradient(batch));
}

StepTicket Network::step(const Batch& batch) {
  requireNotTrainedElsewhere("step");
  detail::requireLoss(impl_->plan);
  if (!impl_->enqueuesUpdates(*this)) return Model::step(batch);
  impl_->normalisation.requireFitted();
  ContextScope scope(context());
  return impl_->steps.enqueue(batch, StepWork::Update);
}

Tensor Network::stepRefused() {
  if (!impl_->enqueuesUpdates(*this)) return {};
  optimizer().plan(block(BlockKind::Parameters), context());
  return optimizer().refused();
}

bool Network::Impl::enqueuesUpdates(Network& network) const {
  return enqueuesSteps && network.optimizer().enqueues() && network.trainingOptions().accumulate == 1;
}

}  // namespace muster
