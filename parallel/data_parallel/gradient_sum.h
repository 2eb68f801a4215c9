#pragma once

#include "muster/parallel/data_parallel/replica.h"

namespace muster {

/// Adds the gradients of replicas, in their order, to those of the user's model. For a model on the CPU each
/// replica's thread adds one slice of all gradients; for a model on a GPU one operation adds them there.
class GradientSum {
 public:
  /// @param total  the user's model's gradients, on `context`.
  GradientSum(Replicas replicas, Tensor& total, Context& context);

  /// A replica's part, on its thread, once all have their gradients.
  void addPart(Replica& replica) const;
  /// Once all have done their part, on the caller's thread.
  /// @throws TrainingError naming a replica that failed.
  void finish();

 private:
  void addSlice(Replica& replica) const;
  void addAll();

  Replicas replicas_;
  Tensor& total_;
  Context& context_;
  const bool onOneCpu_;  // the model and all replicas
};

}  // namespace muster
