#include "muster/core/listeners/monitored.h"

#include "muster/core/base/error.h"
#include "muster/core/eval/evaluation.h"

namespace muster {

void Monitored::validate(std::string_view caller) const {
  const auto what = name();
  require(mode.has_value(), "{}: mode must be given, Min or Max: whether a smaller or a larger {} is better",
          caller, what);
  const bool validates = monitor == Monitor::Accuracy || monitor == Monitor::Loss;
  require(!validates || validation, "{}: the {} needs validation data, got none", caller, what);
  require(validates || !validation, "{}: the {} does not use the validation data given", caller, what);
  const bool own = monitor == Monitor::Own;
  require(!own || measure, "{}: Monitor::Own needs `measure`", caller);
  require(own || !measure, "{}: `measure` works with Monitor::Own only, not with the {}", caller, what);
  const auto best = monitor == Monitor::Accuracy ? MonitorMode::Max : MonitorMode::Min;
  require(own || *mode == best, "{}: mode {} contradicts the {}, of which {} is better", caller,
          nameOf(*mode), what, best == MonitorMode::Max ? "a larger one" : "a smaller one");
}

std::string_view Monitored::name() const {
  switch (monitor) {
    case Monitor::Accuracy:
      return "validation accuracy";
    case Monitor::Loss:
      return "validation loss";
    case Monitor::TrainingScore:
      return "training score";
    case Monitor::Own:
      return "monitored value";
  }
  throw InvalidArgument(fmt::format("there is no monitor number {}", static_cast<int>(monitor)));
}

double Monitored::value(const EpochEvent& event) const {
  if (monitor == Monitor::TrainingScore) return event.score;
  if (monitor == Monitor::Own) return measure(event.trainer);
  const Evaluation evaluation = event.trainer.evaluate(*validation);
  return monitor == Monitor::Accuracy ? evaluation.accuracy() : evaluation.loss();
}

double Monitored::gain(double value, double before) const {
  return mode == MonitorMode::Max ? value - before : before - value;
}

}  // namespace muster
