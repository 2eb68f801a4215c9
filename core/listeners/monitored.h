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
  Accuracy,       ///< on the validation data; larger is better
  Loss,           ///< on the validation data, as Evaluation::loss; smaller is better
  TrainingScore,  ///< mean over the epoch's training examples; smaller is better
  Own             ///< what `measure` returns
};

template <>
struct EnumNames<Monitor> {
  static constexpr std::array<std::pair<Monitor, std::string_view>, 4> kNames{
      {{Monitor::Accuracy, "accuracy"},
       {Monitor::Loss, "loss"},
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

/// What is monitored at the ends of epochs, and which values are better.
struct Monitored {
  /// Data for Accuracy and Loss; null otherwise. Must outlive its use, and not be the training's.
  DataSetIterator* validation = nullptr;
  Monitor monitor = Monitor::Accuracy;
  std::optional<MonitorMode> mode = {};          ///< required; not derived from the monitor
  std::function<double(Trainer&)> measure = {};  ///< of Monitor::Own

  /// @param caller  begins the message, as in "early stopping".
  /// @throws InvalidArgument without a mode, for one that contradicts the monitor, Accuracy or Loss without
  ///         validation data, the others with them, or Own without `measure` and the others with it.
  void validate(std::string_view caller) const;
  /// As in "validation accuracy".
  std::string_view name() const;
  double value(const EpochEvent& event) const;
  /// By how much `value` is better than `before`; negative if it is worse.
  double gain(double value, double before) const;
};

}  // namespace muster
