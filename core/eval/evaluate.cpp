#include <algorithm>
#include <optional>

#include "muster/core/base/error.h"
#include "muster/core/data/naming_batch.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/data/output_names.h"
#include "muster/core/data/training_reads.h"
#include "muster/core/device/arithmetic_scope.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/eval/detail/rows.h"
#include "muster/core/eval/non_finite_prediction.h"
#include "muster/core/nn/network.h"

namespace muster {
namespace {

/// The batch's labels of the output that is evaluated.
const NamedTensor& labelsOf(const Model& model, const Batch& batch) {
  const std::string_view name = model.outputName();
  const NamedTensor* labels = batch.labelsOf(name);
  require(labels != nullptr, "evaluate: a batch has no labels{}{}", name.empty() ? "" : " called ", name);
  return *labels;
}

void requireRank(const Tensor& predictions) {
  const auto rank = predictions.shape().rank();
  require(rank == 2 || rank == 3, "evaluate: expected predictions [N, classes] or [N, T, classes], got {}",
          predictions.toString());
}

/// Throws the NonFinitePrediction that `add` throws with the example's number in the data, of which an
/// evaluation knows only that in the batch, and with its features.
void add(auto& evaluation, const Model& model, const Batch& batch, const Tensor& predictions, auto... loss) {
  const Tensor mask = batch.lossMask(predictions.shape(), model.outputName());
  try {
    evaluation.add(predictions, labelsOf(model, batch).gathered(), mask, loss...);
  } catch (const NonFinitePrediction&) {
    const Shape rows = predictions.shape().dropLast();
    const std::int64_t steps = rows.rank() == 2 ? rows[1] : 1;
    for (std::int64_t i = 0; i < rows.elements(); ++i)
      if (!detail::isMasked(mask, i))
        detail::requireFinitePredictions(
            detail::rowOf(predictions, i), batch.stamp.firstExample * steps + i, rows, "evaluation", [&] {
              if (batch.features.size() != 1) return std::string();
              return detail::featuresRemark(batch.features.front().gathered(), i / steps,
                                            model.inputDescription().featureNames());
            });
    throw;
  }
}

}  // namespace

void evaluateBatch(Model& model, const Batch& batch, std::optional<Evaluation>& evaluation) {
  Tensor predictions;
  model.output(batch, predictions);
  requireRank(predictions);
  if (!evaluation) evaluation.emplace(std::max<std::int64_t>(predictions.shape()[-1], 2));
  add(*evaluation, model, batch, predictions);
}

void evaluateBatch(Model& model, const Batch& batch, std::optional<AnyEvaluation>& evaluation,
                   std::optional<Task> task) {
  Tensor predictions;
  std::optional<StepScore> loss;
  if (task && *task != model.task())
    model.output(batch, predictions);
  else
    loss = model.outputAndLoss(batch, predictions);
  requireRank(predictions);
  if (!evaluation) evaluation.emplace(task.value_or(model.task()), predictions.shape()[-1]);
  add(*evaluation, model, batch, predictions, loss);
}

AnyEvaluation evaluateTask(Model& model, DataSetIterator& data, std::optional<Task> task) {
  model.requireNotTrainedElsewhere("evaluate");
  requireNotRead(data, "evaluate");
  requireSameInput(data, model.inputDescription(), "evaluate");
  const ArithmeticScope arithmetic(model.context().threads());
  std::optional<AnyEvaluation> evaluation;
  Batch batch;
  BatchStamp stamp;
  data.reset(0);
  for (; nextBatch(data, batch); ++stamp.sequence) {
    batch.stamp = stamp;
    namingBatch([&] { return fmt::format("evaluate: batch {}", stamp.sequence + 1); },
                [&] { evaluateBatch(model, batch, evaluation, task); });
    stamp.firstExample += batch.examples();
  }
  require(evaluation.has_value(), "evaluate: the data set has no batches");
  evaluation->describe(knownDescription(model.inputDescription(), data));
  return *std::move(evaluation);
}

Evaluation evaluate(Model& model, DataSetIterator& data) {
  return evaluateTask(model, data, Task::Classification).classification();
}

Evaluation Evaluated::evaluate(DataSetIterator& data) {
  return evaluateTask(data, Task::Classification).classification();
}

RegressionEvaluation Evaluated::evaluateRegression(DataSetIterator& data) {
  return evaluateTask(data, Task::Regression).regression();
}

BinaryEvaluation Evaluated::evaluateBinary(DataSetIterator& data) {
  return evaluateTask(data, Task::Labels).labels();
}

AnyEvaluation Network::evaluateTask(DataSetIterator& data, std::optional<Task> task) {
  return muster::evaluateTask(*this, data, task);
}

AnyEvaluation Trainer::evaluateTask(DataSetIterator& data, std::optional<Task> task) {
  return muster::evaluateTask(model(), data, task);
}

void Trainer::copyReplica(int, Model&) {
  throw InvalidArgument("copyReplica: this trainer does not show its replicas");
}

}  // namespace muster
