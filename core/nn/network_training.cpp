#include "muster/core/base/error.h"
#include "muster/core/nn/step/network_batch.h"
#include "muster/core/nn/step/network_impl.h"
#include "muster/core/nn/step/network_loss.h"

namespace muster {

using detail::StepWork;

namespace {

/// While it lives, layers that sum over workers throw: workers may have different numbers of slices.
class NoPeers final : public Peers {
 public:
  explicit NoPeers(Context& context) : context_(context), peers_(context.peers()) {
    if (peers_) context_.setPeers(this);
  }
  ~NoPeers() override { context_.setPeers(peers_); }
  NoPeers(const NoPeers&) = delete;
  NoPeers& operator=(const NoPeers&) = delete;

  void sum(std::span<double>) override {
    throw InvalidArgument(
        "accumulate: a layer adds up numbers between workers (synchronised batch normalisation), which is "
        "not supported with more than one batch a step");
  }

 private:
  Context& context_;
  Peers* const peers_;
};

}  // namespace

StepTicket Network::gradient(const Batch& batch) {
  detail::requireLoss(impl_->plan);
  impl_->requireFitted();
  ContextScope scope(context());
  const std::int64_t slices = trainingOptions().accumulate;
  if (slices == 1) return impl_->gradient(batch);
  const NoPeers alone(context());
  StateBlock& gradients = block(BlockKind::Gradients);
  return StepTicket(impl_->slices.gradient(batch, slices, gradients.values, context(),
                                           [this](const Batch& slice) { return impl_->gradient(slice); }));
}

StepTicket Network::Impl::gradient(const Batch& batch) {
  if (enqueuesSteps) return steps.enqueue(batch, StepWork::Gradient);
  const Batch& onDevice = there(batch);
  auto& program = run(onDevice, true);
  const StepScore score = detail::lossOf(plan, program, onDevice, true, context);
  StepInfo info = detail::infoOf(onDevice, seed, true);
  info.lossWeight = score.weight;
  program.backward(info);
  return StepTicket(score);
}

StepTicket Network::step(const Batch& batch) {
  requireNotTrainedElsewhere("step");
  detail::requireLoss(impl_->plan);
  if (!impl_->enqueuesSteps || !optimizer().enqueues() || trainingOptions().accumulate > 1)
    return Model::step(batch);
  impl_->requireFitted();
  ContextScope scope(context());
  return impl_->steps.enqueue(batch, StepWork::Update);
}

Tensor Network::stepRefused() {
  if (!impl_->enqueuesSteps || !optimizer().enqueues() || trainingOptions().accumulate > 1) return {};
  optimizer().plan(block(BlockKind::Parameters), context());
  return optimizer().refused();
}

}  // namespace muster
