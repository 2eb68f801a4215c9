#include "muster/core/listeners/monitored.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/data/next_batch.h"
#include "muster/core/data/training_reads.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/model.h"
#include "muster/core/nn/step/network_impl.h"

namespace muster {
namespace {

/// The labels of the first batch, and the weights of their rows.
struct FirstLabels {
  Tensor labels = {}, mask = {};  // undefined: there are none
};

FirstLabels firstLabels(DataSetIterator& data, const Model& model) {
  requireNotRead(data, "evaluate");
  data.reset(0);
  Batch first;
  if (!nextBatch(data, first)) return {};
  const NamedTensor* const found = first.labelsOf(model.outputName());
  if (found == nullptr) return {};
  Tensor labels = found->gathered();
  Tensor mask = first.lossMask(labels.shape(), model.outputName());
  return {std::move(labels), std::move(mask)};
}

/// Whether an evaluation can be made of these labels.
template <typename Evaluation>
bool accepts(Evaluation evaluation, const FirstLabels& first) {
  try {
    evaluation.add(first.labels, first.labels, first.mask);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

bool areIndices(const Tensor& labels) {
  return labels.dtype() == DType::Int64;
}

/// Whether the labels are classes: indices, or one-hot rows.
bool areClasses(const FirstLabels& first) {
  return areIndices(first.labels) ||
         accepts(Evaluation(std::max<std::int64_t>(first.labels.shape()[-1], 2)), first);
}

/// Whether the labels are 0 or 1 for each output.
bool areBinary(const FirstLabels& first, const Model& model) {
  if (!areIndices(first.labels))
    return first.labels.shape().rank() >= 2 && accepts(BinaryEvaluation(first.labels.shape()[-1]), first);
  const auto* const network = dynamic_cast<const Network*>(&model);
  if (network == nullptr || !network->initialized()) return true;  // unknown here
  const auto& plan = detail::NetworkProbe::of(*network).plan;
  return plan.shapeOf(plan.outputs.front().value)[-1] == 1;
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
  const bool ofClasses = monitor == Monitor::Accuracy || monitor == Monitor::F1;
  if (!(ofClasses && model.task() == Task::Regression) && monitor != Monitor::R2 && monitor != Monitor::Auc)
    return;
  const FirstLabels first = firstLabels(*validation, model);
  if (!first.labels.defined()) return;
  if (ofClasses)
    require(areClasses(first), "{}: a regression has no {}; monitor its loss or R2", caller,
            monitor == Monitor::F1 ? "F1" : "accuracy");
  else if (monitor == Monitor::R2)
    require(!areIndices(first.labels), "{}: a classification has no R2; monitor its accuracy or loss",
            caller);
  else
    require(areBinary(first, model),
            "{}: the AUC is of sigmoid outputs, with labels of 0 or 1 for each; monitor the {}", caller,
            areClasses(first) ? "accuracy or loss" : "loss");
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
