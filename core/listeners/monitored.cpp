#include "muster/core/listeners/monitored.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/data/training_reads.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/nn/model.h"

namespace muster {
namespace {

/// Whether the labels of the first batch are numbers, and not classes: indices, or one-hot rows.
bool hasNumbers(DataSetIterator& data, const Model& model) {
  requireNotRead(data, "evaluate");
  data.reset(0);
  Batch first;
  if (!nextBatch(data, first)) return false;
  const NamedTensor* const found = first.labelsOf(model.outputName());
  if (found == nullptr) return false;
  const Tensor& labels = found->gathered();
  if (labels.dtype() == DType::Int64) return false;
  try {
    Evaluation(std::max<std::int64_t>(labels.shape()[-1], 2))
        .add(labels, labels, first.lossMask(labels.shape(), model.outputName()));
    return false;
  } catch (const InvalidArgument&) {
    return true;
  }
}

}  // namespace

std::optional<MonitorMode> modeOf(Monitor monitor) {
  switch (monitor) {
    case Monitor::Accuracy:
    case Monitor::R2:
    case Monitor::Auc:
    case Monitor::F1:
      return MonitorMode::Max;
    case Monitor::Loss:
    case Monitor::TrainingScore:
      return MonitorMode::Min;
    case Monitor::Own:
      break;
  }
  return {};
}

const Monitored& Monitored::validate(std::string_view caller) const {
  const auto what = name();
  const bool own = monitor == Monitor::Own, validates = !own && monitor != Monitor::TrainingScore;
  require(!own || mode, "{}: mode must be given, Min or Max: whether a smaller or a larger {} is better",
          caller, what);
  require(!validates || validation, "{}: the {} needs validation data, got none", caller, what);
  require(validates || !validation, "{}: the {} does not use the validation data given", caller, what);
  require(!own || measure, "{}: Monitor::Own needs `measure`", caller);
  require(own || !measure, "{}: `measure` works with Monitor::Own only, not with the {}", caller, what);
  const auto best = modeOf(monitor);
  require(!best || better() == *best, "{}: mode {} contradicts the {}, of which {} is better", caller,
          nameOf(better()), what, best == MonitorMode::Max ? "a larger one" : "a smaller one");
  return *this;
}

void Monitored::requireFits(std::string_view caller, Model& model) const {
  if ((monitor == Monitor::Accuracy || monitor == Monitor::F1) && model.task() == Task::Regression)
    require(!hasNumbers(*validation, model), "{}: a regression has no {}; monitor its loss or R2", caller,
            monitor == Monitor::F1 ? "F1" : "accuracy");
}

std::string_view Monitored::name() const {
  switch (monitor) {
    case Monitor::Accuracy:
      return "validation accuracy";
    case Monitor::Loss:
      return "validation loss";
    case Monitor::R2:
      return "validation R2";
    case Monitor::Auc:
      return "validation AUC";
    case Monitor::F1:
      return "validation F1";
    case Monitor::TrainingScore:
      return "training score";
    case Monitor::Own:
      return "monitored value";
  }
  throw InvalidArgument(fmt::format("there is no monitor number {}", static_cast<int>(monitor)));
}

double Monitored::value(const EpochEvent& event) const {
  Trainer& trainer = event.trainer;
  // Classes may be learned as one-hot rows by a loss for numbers.
  const bool labels = trainer.model().task() == Task::Labels;
  switch (monitor) {
    case Monitor::Accuracy:
      return labels ? trainer.evaluateTask(*validation).accuracy() : trainer.evaluate(*validation).accuracy();
    case Monitor::Loss:
      return trainer.evaluateTask(*validation).loss();
    case Monitor::R2:
      return trainer.evaluateTask(*validation, Task::Regression).regression().r2();
    case Monitor::Auc:
      return trainer.evaluateTask(*validation, Task::Labels).labels().auc();
    case Monitor::F1:
      return labels ? trainer.evaluateTask(*validation).f1() : trainer.evaluate(*validation).f1();
    case Monitor::TrainingScore:
      return event.score;
    case Monitor::Own:
      break;
  }
  return measure(trainer);
}

double Monitored::gain(double value, double before) const {
  return better() == MonitorMode::Max ? value - before : before - value;
}

}  // namespace muster
