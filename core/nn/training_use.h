#pragma once

#include "muster/core/nn/model.h"

namespace muster {

/// While it lives, the calling thread trains the model: a second training would mix with it, and another
/// thread that reads the model would get a part of one merge and a part of the next.
class TrainingUse {
 public:
  /// @throws InvalidArgument if the model is trained already, by this or another thread.
  explicit TrainingUse(Model& model);
  ~TrainingUse();
  TrainingUse(const TrainingUse&) = delete;
  TrainingUse& operator=(const TrainingUse&) = delete;

 private:
  Model& model_;
};

}  // namespace muster
