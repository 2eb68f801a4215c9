#include "muster/core/nn/training_use.h"

#include "muster/core/base/error.h"

namespace muster {

TrainingUse::TrainingUse(Model& model) : model_(model) {
  std::thread::id none;
  require(
      model.trainedBy_.compare_exchange_strong(none, std::this_thread::get_id()),
      "fit: another fit() trains this model, of the model itself or of a wrapper; train one at a time, or "
      "a copy (clone)");
}

TrainingUse::~TrainingUse() {
  model_.trainedBy_ = std::thread::id();
}

void Model::requireNotTrainedElsewhere(std::string_view what) const {
  const std::thread::id trainer = trainedBy_;
  require(trainer == std::thread::id() || trainer == std::this_thread::get_id(),
          "{}: another thread trains this model; do it in a listener of that training, on the thread that "
          "called fit(), or after fit()",
          what);
}

}  // namespace muster
