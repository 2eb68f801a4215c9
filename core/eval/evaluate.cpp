#include <algorithm>
#include <optional>

#include "muster/core/base/error.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"

namespace muster {

Evaluation evaluate(Model& model, DataSetIterator& data) {
  std::optional<Evaluation> evaluation;
  Batch batch;
  Tensor predictions;
  data.reset(0);
  while (data.next(batch)) {
    require(!batch.labels.empty(), "evaluate: a batch has no labels");
    model.output(batch, predictions);
    require(predictions.shape().rank() == 2, "evaluate: expected predictions [N, classes], got {}",
            predictions.toString());
    if (!evaluation) evaluation.emplace(std::max<std::int64_t>(predictions.shape()[1], 2));
    evaluation->add(predictions, batch.labels.front().value,
                    batch.masks.empty() ? Tensor() : batch.masks.front().value);
  }
  require(evaluation.has_value(), "evaluate: the data set has no batches");
  return *std::move(evaluation);
}

Evaluation MultiLayerNetwork::evaluate(DataSetIterator& data) {
  return muster::evaluate(*this, data);
}

}  // namespace muster
