#pragma once

#include "muster/parallel/data_parallel/replica.h"

namespace muster {

/// Adds the gradients of replicas, in their order, to those of the user's model. For a model on the CPU each
/// replica's thread adds one slice of all gradients; for a model on a GPU one operation adds them there.
class GradientSum {
 public:
  /// @param total  the user's model's gradients, on `context`.
  GradientSum(Replicas replicas, Tensor& total, Context& context);

  /// Adds a replica's part. Call it on its thread, once all replicas have their gradients.
  void addPart(Replica& replica) const;
  /// Call it on the caller's thread, once `addPart` has returned for all replicas.
  /// @throws TrainingError naming a replica that failed.
  void finish();

 private:
  void addSlice(Replica& replica) const;
  void addAll();

  Replicas replicas_;
  Tensor& total_;
  Context& context_;
  const bool onOneCpu_;  // whether the model and all replicas are on the CPU
};

}  // namespace muster
