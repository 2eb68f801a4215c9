#include "muster/core/nn/predictor.h"

#include "muster/core/base/error.h"
#include "muster/core/data/input_description.h"

namespace muster::detail {

void Predictor::output(const Batch&, Tensor&) {
  throw InvalidArgument("model: this model has no output()");
}

std::optional<StepScore> Predictor::outputAndLoss(const Batch& batch, Tensor& out) {
  output(batch, out);
  return {};
}

double Predictor::score(const Batch&) {
  throw InvalidArgument("model: this model has no score()");
}

const InputDescription& Predictor::inputDescription() const {
  static const InputDescription none;
  return none;
}

}  // namespace muster::detail
