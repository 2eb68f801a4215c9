#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"

namespace muster::detail {

/// Pinned and device memory for the numbers that a step gives: the losses, the penalty and whether the
/// gradient was finite. The addresses never change, so a step that writes here can be recorded.
class StepResults {
 public:
  /// @param outputs  number of losses of a step.
  StepResults(std::size_t outputs, Context& context);

  // On the device.

  /// `lossInto` writes the numbers of output `index` here: float64 [kLossNumbers].
  Tensor& loss(std::size_t index) { return losses_[index]; }
  /// The numbers of all outputs: float64 [outputs * kLossNumbers].
  const Tensor& losses() const { return allLosses_; }
  /// float64 [1].
  Tensor& penalty() { return penalty_; }
  /// float64 [1], see UpdateGuard.
  const Tensor& badGradient() const { return badGradient_; }

  /// Enqueues the copy to the CPU; may be recorded.
  void fetch() { copy(device_, host_, context_); }

  // On the CPU, after `fetch` has completed.

  /// The loss numbers of output `index`.
  std::span<const double> hostLoss(std::size_t index) const;
  double hostPenalty() const { return host_.data<double>()[host_.elements() - 2]; }
  /// -1 if the gradient was finite. Of a step with an update.
  double hostBadGradient() const { return host_.data<double>()[host_.elements() - 1]; }

 private:
  Context& context_;
  Tensor host_, device_;                      // float64 [outputs * kLossNumbers + 2]
  std::vector<Tensor> losses_;                // views [output]
  Tensor allLosses_, penalty_, badGradient_;  // views
};

}  // namespace muster::detail
