#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/core/nn/step/device_copies.h"
#include "muster/core/nn/step/enqueued_steps.h"
#include "muster/core/nn/step/normalisation.h"
#include "muster/core/nn/step/program_cache.h"

namespace muster::detail {

/// A network's passes of whole batches that the host waits for: predictions, loss and gradient.
class BatchPasses {
 public:
  /// All others must outlive it; used only during calls.
  BatchPasses(std::uint64_t seed, const NetworkPlan& plan, Normalisation& normalisation, EnqueuedSteps& steps,
              ProgramCache& programs, DeviceCopies& copies, Context& context)
      : seed_(seed),
        plan_(plan),
        normalisation_(normalisation),
        steps_(steps),
        programs_(programs),
        copies_(copies),
        context_(context) {}

  /// Loss and gradients in training; the gradients are written where the plan's nodes have them.
  StepScore gradient(const Batch& batch);
  /// The loss without training.
  StepScore loss(const Batch& batch);
  /// The prediction of the first output.
  void output(const Batch& batch, Tensor& out);
  /// As `output`, and the loss; nothing if an output has none, the batch has no labels for it, or if
  /// Evaluation::loss computes the loss from the predictions.
  std::optional<StepScore> outputAndLoss(const Batch& batch, Tensor& out);
  /// The predictions of all outputs.
  std::vector<Tensor> outputs(const Batch& batch);

 private:
  /// The batch on the network's device, with the values of all tensors instead of row indices.
  const Batch& there(const Batch& batch);
  /// Runs a batch on the network's device forward. @return the program that holds the result.
  NetworkProgram& forward(const Batch& batch, bool training);
  bool computesLoss(const Batch& batch) const;
  void predict(const NetworkProgram& program, std::size_t index, Tensor& out);

  std::uint64_t seed_;
  const NetworkPlan& plan_;
  Normalisation& normalisation_;
  EnqueuedSteps& steps_;
  ProgramCache& programs_;
  DeviceCopies& copies_;
  Context& context_;
  std::vector<const Tensor*> features_;  // [input] of the current batch
  Batch gathered_;                       // on the CPU, of a batch of row indices
};

}  // namespace muster::detail
