#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "muster/core/base/fields.h"
#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/listener.h"

namespace muster {

/// A number that measures how good a training is.
enum class Monitor {
  Accuracy,  ///< on the validation data; larger is better
  Loss,      ///< the model's own loss on the validation data, without penalties; smaller is better
  R2,        ///< of a regression, on the validation data, mean over the outputs; larger is better
  Auc,       ///< area under the ROC curve of sigmoid outputs, likewise; larger is better
  F1,        ///< macro mean over the classes or labels, likewise: counts each class alike; larger is better
  TrainingScore,  ///< mean over the epoch's training examples; smaller is better
  Own             ///< what `measure` returns
};

template <>
struct EnumNames<Monitor> {
  static constexpr std::array<std::pair<Monitor, std::string_view>, 7> kNames{
      {{Monitor::Accuracy, "accuracy"},
       {Monitor::Loss, "loss"},
       {Monitor::R2, "r2"},
       {Monitor::Auc, "auc"},
       {Monitor::F1, "f1"},
       {Monitor::TrainingScore, "trainingScore"},
       {Monitor::Own, "own"}}};
};

/// Which of two values is the better one.
enum class MonitorMode { Min, Max };

template <>
struct EnumNames<MonitorMode> {
  static constexpr std::array<std::pair<MonitorMode, std::string_view>, 2> kNames{
      {{MonitorMode::Min, "min"}, {MonitorMode::Max, "max"}}};
};

/// The mode that belongs to a monitor; none for Monitor::Own.
std::optional<MonitorMode> modeOf(Monitor monitor);

/// What is monitored at the ends of epochs, and which values are better.
struct Monitored {
  /// Data for monitors on validation data; null otherwise. Must outlive its use, and not be the training's.
  DataSetIterator* validation = nullptr;
  Monitor monitor = Monitor::Accuracy;
  std::optional<MonitorMode> mode = {};          ///< empty: the monitor's; Own has none, so it needs one
  std::function<double(Trainer&)> measure = {};  ///< of Monitor::Own

  /// @param caller  begins the message, as in "early stopping".
  /// @throws InvalidArgument for Own without a mode, a mode that contradicts the monitor, a monitor on
  ///         validation data without them, the others with them, or Own without `measure` and the others with
  ///         it.
  /// @return itself.
  const Monitored& validate(std::string_view caller) const;
  /// Call it when a training begins. It looks at the labels of the first validation batch.
  /// @throws InvalidArgument for the accuracy or F1 of a regression, unless its labels are classes as one-hot
  ///         rows; for the R2 of class indices; for an AUC unless the labels are 0 or 1 for each output.
  void requireFits(std::string_view caller, Model& model) const;
  /// As in "validation accuracy".
  std::string_view name() const;
  /// The given mode, or the monitor's. After `validate`.
  MonitorMode better() const { return mode ? *mode : *modeOf(monitor); }
  double value(const EpochEvent& event) const;
  /// By how much `value` is better than `before`; negative if it is worse.
  double gain(double value, double before) const;
};

}  // namespace muster
