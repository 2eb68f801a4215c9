#pragma once

#include <optional>
#include <string_view>

#include "muster/core/data/batch.h"
#include "muster/core/nn/step_ticket.h"
#include "muster/core/nn/task.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

struct InputDescription;

namespace detail {

/// What a model predicts, and how evaluations compare its predictions with labels.
class Predictor {
 public:
  virtual ~Predictor() = default;

  /// The predictions for the batch's features: `out` is resized, on the CPU.
  /// @throws InvalidArgument if a model does not implement it.
  virtual void output(const Batch& batch, Tensor& out);
  /// As `output`. @return the batch's mean loss and its normaliser, as `score`, from the same pass; nothing
  /// if the model does not compute it, or if it is the cross-entropy that Evaluation::loss computes from the
  /// predictions. Default: nothing.
  virtual std::optional<StepScore> outputAndLoss(const Batch& batch, Tensor& out);
  /// The mean loss of a batch, without training and without penalty. Default as `output`.
  virtual double score(const Batch& batch);
  /// What `output` predicts, which decides how the model is evaluated. Default: classes.
  virtual Task task() const { return Task::Classification; }
  /// The name of the labels and the mask that `output` is compared with. Default: empty, the first labels,
  /// and the first mask that is not called "features".
  virtual std::string_view outputName() const { return {}; }
  /// What the model knows of its data: evaluations name classes and give errors in a target's own units by
  /// it, and refuse data that mean something else. Default: empty, nothing is known.
  virtual const InputDescription& inputDescription() const;
};

}  // namespace detail
}  // namespace muster
