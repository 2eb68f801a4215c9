#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/core/data/input_description.h"
#include "muster/core/nn/task.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// What a network says of rows or pictures, by the names in its description.
struct Predictions {
  std::vector<std::string> names = {};  ///< [column of `values`] the classes, labels or numbers to predict
  Tensor values = {};  ///< float32 [N, names]: probabilities, or numbers in the table's own units
  std::vector<double> numbers = {};       ///< [N * names] of a regression: `values`, not rounded to float32
  std::vector<std::string> classes = {};  ///< [N] the most probable one; empty for labels and regressions

  /// The most probable class of a row. @throws InvalidArgument for a regression, or a row that does not
  /// exist.
  const std::string& classOf(std::int64_t row) const;
  /// A probability, or the number to predict. @throws InvalidArgument for one that does not exist.
  float valueOf(std::int64_t row, std::int64_t column = 0) const;
};

/// Names the outputs of a network for examples: the most probable class, and numbers in their own units.
/// One output with classes is the probability of the second one, which is predicted above 0.5.
/// @param outputs  float32 [N, outputs].
/// @param task  `Model::task` of the network. Labels each have a probability of their own.
/// @throws InvalidArgument if the description names no outputs, another number of them, or both classes and
///         numbers; NonFinitePrediction, which is one, for an output that is NaN or infinite, naming its row.
Predictions namedOutputs(const InputDescription& description, const Tensor& outputs,
                         Task task = Task::Classification);

}  // namespace muster
