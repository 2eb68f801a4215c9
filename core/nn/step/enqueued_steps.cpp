#include "muster/core/nn/step/enqueued_steps.h"

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/nn/step/network_batch.h"
#include "muster/core/nn/step/network_loss.h"
#include "muster/core/optim/finite_gradient.h"

namespace muster::detail {

StepTicket EnqueuedSteps::enqueue(const Batch& batch, StepWork work) {
  const BatchSize size = sizeOf(batch);
  requireLabelValues(plan_, batch);
  auto& owner = programs_.get(plan_, size, true, network_.context());
  StepRunner& steps = runner(owner, batch);
  StagingSlot& slot = steps.begin(batch);
  if (work == StepWork::Update) {
    auto& optimizer = network_.optimizer();
    optimizer.plan(network_.block(BlockKind::Parameters), network_.context());
    optimizer.writeNumbers(batch.stamp.iteration, batch.stamp.epoch, network_.updatesAt(batch.stamp),
                           slot.hostUpdateNumbers());
  }
  const std::uint64_t number = scores_.nextNumber();
  steps.run(number, work);
  return {*this, number, knownWeight(plan_, *owner.program, batch)};
}

const Batch& EnqueuedSteps::fetch(const Batch& batch) {
  auto& owner = programs_.get(plan_, sizeOf(batch), false, network_.context());
  StagingSlot& slot = runner(owner, batch).begin(batch);
  slot.fetchAlone();
  return slot.batch();
}

StepScore EnqueuedSteps::wait(std::uint64_t number) {
  programs_.finish(number);
  return scores_.get(number);
}

/// Checks the batch before it is copied.
BatchSize EnqueuedSteps::sizeOf(const Batch& batch) {
  requireInitialized(plan_);
  if (!batch.namesRows()) {
    findFeatures(plan_, batch, features_);
    return detail::sizeOf(plan_, features_);
  }
  batch.requireMaskValues();  // GPU kernels do not check them
  require(batch.examples() > 0, "network: the batch has no examples");
  BatchSize size{.examples = batch.examples()};
  for (const auto& input : plan_.inputs) {  // all rows of a data set have one shape
    const auto& named = namedFor(batch.features, "features", input.name, plan_.inputs.size() == 1);
    addOpenSizes(input, (named.source ? named.source->onCpu() : named.value).shape(), size);
  }
  return size;
}

/// The runner of steps with batches of this form.
StepRunner& EnqueuedSteps::runner(ProgramCache::Entry& owner, const Batch& batch) {
  if (StepRunner* found = ProgramCache::find(owner, batch)) return *found;
  NetworkProgram& program = *owner.program;
  return ProgramCache::add(
      owner, std::make_unique<StepRunner>(
                 batch, plan_.outputs.size(), program.recordable(),
                 [this, &program](StagingSlot& slot, StepWork work) { enqueueStep(program, slot, work); },
                 [this, &program](std::uint64_t number, const StagingSlot& slot, StepWork work) {
                   finish(number, program, slot, work);
                 },
                 network_.context()));
}

/// Enqueues a whole step, from copying its numbers to fetching its results.
void EnqueuedSteps::enqueueStep(NetworkProgram& program, StagingSlot& slot, StepWork work) {
  slot.fetch();
  findFeatures(plan_, slot.batch(), features_);
  StepInfo info = infoOf(slot.batch(), seed_, true);
  if (program.recordable()) info.position = &slot.position();
  program.forward(features_, info);
  enqueueLosses(plan_, program, slot, network_.context());
  if (!program.recordable()) {
    slot.results().fetch();
    network_.context().synchronize();
    info.lossWeight = scoreOf(plan_, program, slot).weight;
  }
  program.backward(info);
  if (work == StepWork::Update)
    network_.optimizer().enqueue(network_.block(BlockKind::Parameters), network_.block(BlockKind::Gradients),
                                 slot.updateNumbers(), slot.results().penalty(), slot.results().losses(),
                                 slot.results().badGradient());
  slot.results().fetch();
}

/// Keeps the score of a finished step.
void EnqueuedSteps::finish(std::uint64_t number, const NetworkProgram& program, const StagingSlot& slot,
                           StepWork work) {
  try {
    StepScore score = scoreOf(plan_, program, slot);
    if (work == StepWork::Update) {
      if (std::isfinite(score.score) && slot.results().hostBadGradient() >= 0)
        throwNonFiniteGradient(*network_.block(BlockKind::Gradients).segments,
                               static_cast<std::int64_t>(slot.results().hostBadGradient()));
      score.score += slot.results().hostPenalty();
    }
    scores_.put(number, score);
  } catch (...) {
    scores_.put(number, std::current_exception());
  }
}

}  // namespace muster::detail
