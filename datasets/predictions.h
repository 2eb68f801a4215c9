#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/core/data/input_description.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// What a network says of rows or pictures, by the names in its description.
struct Predictions {
  std::vector<std::string> names = {};  ///< [column of `values`] the classes, or the numbers to predict
  Tensor values = {};  ///< float32 [N, names]: probabilities, or numbers in the table's own units
  std::vector<std::string> classes = {};  ///< [N] the most probable one; empty for a regression

  /// The most probable class of a row. @throws InvalidArgument for a regression, or a row that does not
  /// exist.
  const std::string& classOf(std::int64_t row) const;
  /// A probability, or the number to predict. @throws InvalidArgument for one that does not exist.
  float valueOf(std::int64_t row, std::int64_t column = 0) const;
};

/// Outputs are the probabilities of classes or numbers: one of them has names.
/// @throws InvalidArgument if the description names another number of outputs, or both classes and numbers.
void requireNames(const InputDescription& description, std::int64_t outputs);

/// Names the outputs of a network for examples: the most probable class, and numbers in their own units.
/// One output with classes is the probability of the second one, which is predicted above 0.5.
/// @param outputs  float32 [N, outputs].
/// @throws InvalidArgument as `requireNames`.
Predictions namedOutputs(const InputDescription& description, const Tensor& outputs);

}  // namespace muster
