#include "muster/core/nn/step/manual_pass.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/step/network_batch.h"
#include "muster/core/ops/detail/expect.h"
#include "muster/core/ops/reorder.h"

namespace muster::detail {

void ManualPass::check(const Tensor& input) const {
  requireInitialized(plan_);
  require(plan_.inputs.size() == 1 && plan_.outputs.size() == 1,
          "network: forward() is for networks with one input and one output, this one has {} and {}",
          plan_.inputs.size(), plan_.outputs.size());
  requireInput(plan_, 0, input);
}

void ManualPass::forward(const Tensor& input, Tensor& output, const ForwardPass& pass) {
  ContextScope scope(context_);
  // Compile for training even in evaluation: a backward pass may follow, which reads the activations.
  const Tensor* const only[] = {&input};
  auto& entry = programs_.get(plan_, sizeOf(plan_, only), true, context_);
  const StepInfo info{.stamp = {.epoch = pass.call, .firstExample = pass.firstExample},
                      .seed = seed_,
                      .training = pass.training,
                      .replaceStatistics = pass.replaceStatistics};
  const Tensor* inputs[] = {&copies_.of(input)};
  entry.program->forward(inputs, info);
  const Tensor& result = entry.program->output(0);
  output.resize(result.shape(), DType::Float32);
  copies_.fetch(result, output);
  use_ = entry.use;
  info_ = info;
}

void ManualPass::backward(const Tensor& gradOutput, Tensor* gradInput) {
  ContextScope scope(context_);
  auto* const program = programs_.heldSince(use_);
  require(program != nullptr,
          "network: backward() needs the activations of a forward() before it, which a step, a "
          "gradient or many other batch sizes in between overwrite");
  expectTensor("network", "gradOutput", gradOutput,
               {.shape = program->outputGradient(0).shape(), .device = gradOutput.device()});
  require(gradInput == nullptr || !plan_.inputs.front().indices,
          "network: there is no gradient with respect to {}, which holds indices", plan_.inputs.front().name);
  copy(gradOutput, program->outputGradient(0), context_);
  // The gradient belongs to one loss even if the input is part of a batch (DataParallel).
  info_.lossWeight = 1;
  program->backward(info_, gradInput != nullptr);
  if (!gradInput) return context_.synchronize();  // the caller may change gradOutput on return
  gradInput->resize(program->inputGradient(0).shape(), DType::Float32);
  Tensor& rows = copies_.resultFor(*gradInput);
  reorder(program->inputGradient(0), rows, context_);
  copies_.fetch(rows, *gradInput);
}

}  // namespace muster::detail
