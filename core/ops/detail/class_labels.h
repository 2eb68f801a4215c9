#pragma once

#include "muster/core/ops/loss.h"

namespace muster::detail {

/// Whether labels of predictions [N, F] or [N, T, F] may be class indices.
inline bool takesClasses(Loss loss, const Shape& predictions) {
  return loss == Loss::NegativeLogLikelihood || (loss == Loss::BinaryCrossEntropy && predictions[-1] == 1);
}

}  // namespace muster::detail
