#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "muster/core/eval/binary_evaluation.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/eval/exact_sum.h"
#include "muster/core/eval/regression_evaluation.h"
#include "muster/core/nn/step_ticket.h"
#include "muster/core/nn/task.h"

namespace muster {

/// The evaluation of a task: one of Evaluation, RegressionEvaluation and BinaryEvaluation, and the model's
/// own loss. Like these it does not depend on the order of the batches, nor on the workers and nodes.
class AnyEvaluation {
 public:
  /// @param columns  of the predictions: classes (1 is two classes), numbers or labels.
  AnyEvaluation(Task task, std::int64_t columns);

  Task task() const { return static_cast<Task>(result_.index()); }
  /// The evaluation. @throws InvalidArgument naming the task, if it is another.
  const Evaluation& classification() const& { return as<Evaluation>(Task::Classification); }
  const RegressionEvaluation& regression() const& { return as<RegressionEvaluation>(Task::Regression); }
  const BinaryEvaluation& labels() const& { return as<BinaryEvaluation>(Task::Labels); }
  /// As above, of a temporary: moves the evaluation, without an allocation.
  Evaluation classification() && { return moved<Evaluation>(Task::Classification); }
  RegressionEvaluation regression() && { return moved<RegressionEvaluation>(Task::Regression); }
  BinaryEvaluation labels() && { return moved<BinaryEvaluation>(Task::Labels); }

  std::int64_t examples() const;
  /// Classes, columns of a regression, or labels.
  std::int64_t columns() const;
  /// The mean of the model's own loss over the batches, without penalty, each with its loss normaliser. If
  /// the model does not compute it, or another task than its own was asked for: Evaluation::loss, or NaN if
  /// it is no classification.
  double loss() const;
  /// The accuracy of a classification or of labels. @throws InvalidArgument for a regression.
  double accuracy() const;
  /// Likewise: the macro mean of the classes' or labels' F1.
  double f1() const;

  /// The main score, larger is better: "accuracy", or "r2" of a regression.
  std::pair<std::string_view, double> mainScore() const;
  /// The main scores in a line: "accuracy 0.9834, macro F1 0.9833", "R2 0.8110, RMSE 2.31, MAE 1.7" or
  /// "accuracy 0.9120, AUC 0.9553".
  std::string line() const;
  /// Tables to read.
  std::string summary() const;

  /// Adds a batch; as the `add` of the task's evaluation. @param loss  of the batch, if the model computes
  /// it.
  void add(const Tensor& predictions, const Tensor& labels, const Tensor& mask = {},
           const std::optional<StepScore>& loss = {});
  /// @throws InvalidArgument if it is of another task, or has other classes, columns or labels.
  void merge(const AnyEvaluation& other);
  /// Names the classes, labels or columns of a regression, whose errors are in their own units from then on;
  /// nothing if the description names another number of them. `evaluateTask` does so by the model's
  /// description, or the data's if the model has none.
  void describe(const InputDescription& description);

  bool operator==(const AnyEvaluation&) const = default;

  /// All that was added, for processes that evaluate together.
  std::vector<std::int64_t> toNumbers() const;
  /// The reverse. @throws InvalidArgument for numbers that are no evaluation's.
  static AnyEvaluation fromNumbers(std::span<const std::int64_t> numbers);

 private:
  using Result = std::variant<Evaluation, RegressionEvaluation, BinaryEvaluation>;  // [Task]
  explicit AnyEvaluation(Result result) : result_(std::move(result)) {}
  static Result make(Task task, std::int64_t columns);
  template <typename Kind>
  const Kind& as(Task task) const {
    requireTask(task);
    return std::get<Kind>(result_);
  }
  template <typename Kind>
  Kind moved(Task task) {
    requireTask(task);
    return std::get<Kind>(std::move(result_));
  }
  void requireTask(Task task) const;

  Result result_;
  ExactSum losses_, weights_;  // losses times their weights
};

class DataSetIterator;
class Model;
struct Batch;

/// Runs `model` over a batch and adds its predictions; the first batch creates the evaluation. For code that
/// loops over batches itself. @param task  empty: the model's own.
/// @throws InvalidArgument if labels and predictions do not match; nothing of the batch is added then.
void evaluateBatch(Model& model, const Batch& batch, std::optional<AnyEvaluation>& evaluation,
                   std::optional<Task> task = {});

/// Runs `model` over all batches of `data`, from its start (epoch 0), and evaluates it by its own task
/// (`Model::task`), or the given one.
/// @throws InvalidArgument if there are no batches, or labels and predictions do not match.
AnyEvaluation evaluateTask(Model& model, DataSetIterator& data, std::optional<Task> task = {});

}  // namespace muster
