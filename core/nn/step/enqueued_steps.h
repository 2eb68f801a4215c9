#pragma once

#include <cstdint>
#include <vector>

#include "muster/core/nn/model.h"
#include "muster/core/nn/step/program_cache.h"
#include "muster/core/nn/step/score_ring.h"

namespace muster::detail {

/// A network's training steps that are enqueued and recorded, and their scores.
class EnqueuedSteps final : public PendingScores {
 public:
  /// @param network, plan, programs  must outlive it; used only during calls.
  EnqueuedSteps(Model& network, std::uint64_t seed, const NetworkPlan& plan, ProgramCache& programs)
      : network_(network), seed_(seed), plan_(plan), programs_(programs) {}

  /// Enqueues a step: the gradient of `batch` and, for Update, the update.
  StepTicket enqueue(const Batch& batch, StepWork work);
  /// Copies a batch to the device like a step, for a pass that is not a step.
  const Batch& fetch(const Batch& batch);

  bool ready(std::uint64_t number) override { return programs_.complete(number); }
  StepScore wait(std::uint64_t number) override;

 private:
  BatchSize sizeOf(const Batch& batch);
  StepRunner& runner(ProgramCache::Entry& owner, const Batch& batch);
  void enqueueStep(NetworkProgram& program, StagingSlot& slot, StepWork work);
  void finish(std::uint64_t number, const NetworkProgram& program, const StagingSlot& slot, StepWork work);

  Model& network_;
  std::uint64_t seed_;
  const NetworkPlan& plan_;
  ProgramCache& programs_;
  ScoreRing scores_;
  std::vector<const Tensor*> features_;  // [input] of the current batch
};

}  // namespace muster::detail
