#pragma once

#include <cstdint>
#include <functional>

#include "muster/core/data/batch.h"
#include "muster/core/nn/step_ticket.h"
#include "muster/core/tensor/tensor.h"

namespace muster::detail {

/// Computes the gradient of a batch slice by slice, so that memory holds only one slice's activations. The
/// slices are the batches that were joined (Batch::parts); of a batch that was not joined, parts of one size.
/// Allocates nothing after the first batch. One thread at a time.
class GradientSlices {
 public:
  /// @param count  slices of a batch that was not joined; each has ceil(N / count) rows, the last may have
  ///               fewer.
  /// @param gradients  receives the slices' mean, weighted by their loss normalisers, added up in float64 and
  ///                   rounded once.
  /// @param gradient  computes a slice's gradient into `gradients`; this function waits for it.
  /// @return the weighted mean of the scores, and the sum of the weights.
  StepScore gradient(const Batch& batch, std::int64_t count, Tensor& gradients, Context& context,
                     const std::function<StepTicket(const Batch&)>& gradient);

 private:
  Batch slice_;
  Tensor sums_;  // float64, like the gradients
};

}  // namespace muster::detail
