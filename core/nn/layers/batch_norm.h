#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/module.h"
#include "muster/core/ops/batch_norm.h"

namespace muster {

/// Batch normalisation of each channel of [C, H, W], or feature of [C]: activation(gamma (x - mean) /
/// sqrt(variance + epsilon) + beta). In training mean and variance are the batch's, which needs more than one
/// value per channel, and the running statistics move towards them; in evaluation they are the running
/// statistics, initially 0 and 1.
///
/// All variances, also the running ones (unlike PyTorch's), are divided by the number of values (biased). So
/// the moments of several workers merge to those of their joined examples. Parameters: gamma [C] and beta
/// [C], initially 1 and 0, without L1, L2 or weight decay. Source: Ioffe and Szegedy 2015.
struct BatchNorm {
  static constexpr std::string_view kType = "batchnorm";
  static constexpr PaddingUse kPaddingUse = PaddingUse::PerStep;

  /// Weight of the new batch in the running statistics: running = (1 - momentum) running + momentum batch.
  /// Above 0, at most 1. (Deeplearning4j's `decay` is one minus this.)
  double momentum = 0.1;
  double epsilon = 1e-5;  ///< added to the variance
  Activation activation = Activation::Identity;
  bool affine = true;  ///< has gamma and beta
  /// In a ParallelWrapper or DataParallel: normalises over the batches of all workers in the step. Workers
  /// wait for each other in each such layer, forward and backward.
  bool synchronised = false;
  std::string name = {};

  Shape outputShape(const Shape& input) const;
  std::vector<ParameterSpec> parameters(const Shape& input) const;
  std::vector<ParameterSpec> statistics(const Shape& input) const;
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const;
  void fields(Fields& f);
  void validate() const;
};

}  // namespace muster
