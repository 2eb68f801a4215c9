#include <algorithm>
#include <optional>

#include "muster/core/base/error.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/data/training_reads.h"
#include "muster/core/device/arithmetic_scope.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/network.h"

namespace muster {

void evaluateBatch(Model& model, const Batch& batch, std::optional<Evaluation>& evaluation) {
  Tensor predictions;
  model.output(batch, predictions);
  const Shape& shape = predictions.shape();
  require(shape.rank() == 2 || shape.rank() == 3,
          "evaluate: expected predictions [N, classes] or [N, T, classes], got {}", predictions.toString());
  const std::string_view name = model.outputName();
  const NamedTensor* labels = batch.labelsOf(name);
  require(labels != nullptr, "evaluate: a batch has no labels{}{}", name.empty() ? "" : " called ", name);
  if (!evaluation) evaluation.emplace(std::max<std::int64_t>(shape[-1], 2));
  evaluation->add(predictions, labels->gathered(), batch.lossMask(shape, name));
}

Evaluation evaluate(Model& model, DataSetIterator& data) {
  model.requireNotTrainedElsewhere("evaluate");
  requireNotRead(data, "evaluate");
  const ArithmeticScope arithmetic(model.context().threads());
  std::optional<Evaluation> evaluation;
  Batch batch;
  BatchStamp stamp;
  data.reset(0);
  for (; nextBatch(data, batch); ++stamp.sequence) {
    batch.stamp = stamp;
    evaluateBatch(model, batch, evaluation);
    stamp.firstExample += batch.examples();
  }
  require(evaluation.has_value(), "evaluate: the data set has no batches");
  return *std::move(evaluation);
}

Evaluation Network::evaluate(DataSetIterator& data) {
  return muster::evaluate(*this, data);
}

Evaluation Trainer::evaluate(DataSetIterator& data) {
  return muster::evaluate(model(), data);
}

}  // namespace muster
