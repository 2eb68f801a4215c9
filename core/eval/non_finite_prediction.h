#pragma once

#include "muster/core/base/error.h"

namespace muster {

/// A prediction or a loss that an evaluation got is NaN or infinite: the model has diverged, while data and
/// shapes are right.
class NonFinitePrediction : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

}  // namespace muster
