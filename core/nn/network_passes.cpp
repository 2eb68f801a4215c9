#include "muster/core/base/error.h"
#include "muster/core/nn/step/network_batch.h"
#include "muster/core/nn/step/network_impl.h"
#include "muster/core/ops/detail/expect.h"
#include "muster/core/ops/reorder.h"

// Forward and backward passes called by the user, without a loss.

namespace muster {

void Network::forward(const Tensor& input, Tensor& output, const ForwardPass& pass) {
  requireNotTrainedElsewhere("forward");
  detail::requireInitialized(impl_->plan);
  require(impl_->plan.inputs.size() == 1 && impl_->plan.outputs.size() == 1,
          "network: forward() is for networks with one input and one output, this one has {} and {}",
          impl_->plan.inputs.size(), impl_->plan.outputs.size());
  detail::requireInput(impl_->plan, 0, input);
  impl_->requireFitted();
  ContextScope scope(context());
  // Compile for training even in evaluation: a backward pass may follow, which reads the activations.
  const Tensor* const only[] = {&input};
  auto& entry = impl_->programs.get(impl_->plan, detail::sizeOf(impl_->plan, only), true, context());
  const StepInfo info{.stamp = {.epoch = pass.call, .firstExample = pass.firstExample},
                      .seed = impl_->seed,
                      .training = pass.training,
                      .replaceStatistics = pass.replaceStatistics};
  const Tensor* inputs[] = {&impl_->copies.of(input)};
  entry.program->forward(inputs, info);
  const Tensor& result = entry.program->output(0);
  output.resize(result.shape(), DType::Float32);
  impl_->copies.fetch(result, output);
  impl_->forwardUse = entry.use;
  impl_->forwardInfo = info;
}

void Network::backward(const Tensor& gradOutput, Tensor* gradInput) {
  auto* const program = impl_->programs.heldSince(impl_->forwardUse);
  require(program != nullptr,
          "network: backward() needs the activations of a forward() before it, which a step, a gradient "
          "or many other batch sizes in between overwrite");
  ContextScope scope(context());
  detail::expectTensor("network", "gradOutput", gradOutput,
                       {.shape = program->outputGradient(0).shape(), .device = gradOutput.device()});
  require(gradInput == nullptr || !impl_->plan.inputs.front().indices,
          "network: there is no gradient with respect to {}, which holds indices",
          impl_->plan.inputs.front().name);
  copy(gradOutput, program->outputGradient(0), context());
  // The gradient belongs to one loss even if the input is part of a batch (DataParallel).
  impl_->forwardInfo.lossWeight = 1;
  program->backward(impl_->forwardInfo, gradInput != nullptr);
  if (!gradInput) return context().synchronize();  // the caller may change gradOutput on return
  gradInput->resize(program->inputGradient(0).shape(), DType::Float32);
  Tensor& rows = impl_->copies.resultFor(*gradInput);
  reorder(program->inputGradient(0), rows, context());
  impl_->copies.fetch(rows, *gradInput);
}

}  // namespace muster
