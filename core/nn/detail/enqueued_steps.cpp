#include "muster/core/nn/detail/enqueued_steps.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/detail/network_batch.h"
#include "muster/core/nn/detail/network_loss.h"

namespace muster::detail {

StepTicket EnqueuedSteps::enqueue(const Batch& batch, StepWork work) {
  auto& owner = programs_.get(plan_, examplesOf(batch), true, network_.context());
  StepRunner& steps = runner(owner, batch);
  StepLane& lane = steps.begin(batch);
  if (work == StepWork::Update) {
    auto& optimizer = network_.optimizer();
    optimizer.plan(network_.block(BlockKind::Parameters), network_.context());
    optimizer.writeNumbers(batch.stamp.iteration, batch.stamp.epoch, lane.hostUpdateNumbers());
  }
  const std::uint64_t number = scores_.nextNumber();
  steps.run(number, work);
  return {*this, number};
}

const Batch& EnqueuedSteps::fetch(const Batch& batch) {
  auto& owner = programs_.get(plan_, examplesOf(batch), false, network_.context());
  StepLane& lane = runner(owner, batch).begin(batch);
  lane.fetchAlone();
  return lane.batch();
}

StepScore EnqueuedSteps::wait(std::uint64_t number) {
  programs_.finish(number);
  return scores_.get(number);
}

/// Checks what can be checked before the batch is copied.
std::int64_t EnqueuedSteps::examplesOf(const Batch& batch) {
  requireInitialized(plan_);
  if (batch.namesRows())
    batch.requireMaskValues();  // the kernels of a GPU do not look at them
  else
    findFeatures(plan_, batch, features_);
  require(batch.examples() > 0, "network: the batch has no examples");
  return batch.examples();
}

/// The steps of a program with batches of this form.
StepRunner& EnqueuedSteps::runner(ProgramCache::Entry& owner, const Batch& batch) {
  if (StepRunner* found = ProgramCache::find(owner, batch)) return *found;
  NetworkProgram& program = *owner.program;
  return ProgramCache::add(
      owner, std::make_unique<StepRunner>(
                 batch, plan_.outputs.size(), program.recordable(),
                 [this, &program](StepLane& lane, StepWork work) { enqueueStep(program, lane, work); },
                 [this, &program](std::uint64_t number, const StepLane& lane, StepWork work) {
                   finish(number, program, lane, work);
                 },
                 network_.context()));
}

/// Everything of a step from its numbers to its results.
void EnqueuedSteps::enqueueStep(NetworkProgram& program, StepLane& lane, StepWork work) {
  lane.fetch();
  findFeatures(plan_, lane.batch(), features_);
  StepInfo info = infoOf(lane.batch(), seed_, true);
  if (program.recordable()) info.position = &lane.position();
  program.forward(features_, info);
  enqueueLosses(plan_, program, lane, network_.context());
  if (!program.recordable()) {
    lane.fetchResults();
    network_.context().synchronize();
    info.lossWeight = scoreOf(plan_, program, lane).weight;
  }
  program.backward(info);
  if (work == StepWork::Update)
    network_.optimizer().enqueue(network_.block(BlockKind::Parameters), network_.block(BlockKind::Gradients),
                                 lane.updateNumbers(), lane.penalty(), lane.losses());
  lane.fetchResults();
}

/// Keeps the score of a step that is done.
void EnqueuedSteps::finish(std::uint64_t number, const NetworkProgram& program, const StepLane& lane,
                           StepWork work) {
  try {
    StepScore score = scoreOf(plan_, program, lane);
    if (work == StepWork::Update) score.score += lane.hostPenalty();
    scores_.put(number, score);
  } catch (...) {
    scores_.put(number, std::current_exception());
  }
}

}  // namespace muster::detail
