#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "muster/core/base/fields.h"

namespace muster {

/// What a model predicts, which decides how it is evaluated.
enum class Task {
  Classification,  ///< one of several classes: Evaluation
  Regression,      ///< numbers: RegressionEvaluation
  Labels           ///< several labels that are 0 or 1 each: BinaryEvaluation
};

template <>
struct EnumNames<Task> {
  static constexpr std::array<std::pair<Task, std::string_view>, 3> kNames{
      {{Task::Classification, "classification"}, {Task::Regression, "regression"}, {Task::Labels, "labels"}}};
};

}  // namespace muster
