#include "muster/core/nn/detail/network_batch.h"
#include "muster/core/nn/detail/network_impl.h"
#include "muster/core/nn/detail/network_loss.h"

namespace muster {

using detail::StepWork;

StepTicket Network::gradient(const Batch& batch) {
  detail::requireLoss(impl_->plan);
  ContextScope scope(context());
  if (impl_->enqueuesSteps) return impl_->steps.enqueue(batch, StepWork::Gradient);
  const Batch& there = impl_->there(batch);
  auto& program = impl_->run(there, true);
  const StepScore score = detail::lossOf(impl_->plan, program, there, true, context());
  StepInfo info = detail::infoOf(there, impl_->seed, true);
  info.lossWeight = score.weight;
  program.backward(info);
  return StepTicket(score);
}

StepTicket Network::step(const Batch& batch) {
  detail::requireLoss(impl_->plan);
  if (!impl_->enqueuesSteps || !optimizer().enqueues()) return Model::step(batch);
  ContextScope scope(context());
  return impl_->steps.enqueue(batch, StepWork::Update);
}

Tensor Network::stepRefused() {
  if (!impl_->enqueuesSteps || !optimizer().enqueues()) return {};
  optimizer().plan(block(BlockKind::Parameters), context());
  return optimizer().refused();
}

}  // namespace muster
