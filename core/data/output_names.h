#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/core/data/input_description.h"

namespace muster {

/// [output] names: of a description's classes, which may also be labels that are 0 or 1 each, or of its
/// numbers to predict. Empty if they have none.
/// @throws InvalidArgument if it names both classes and numbers.
std::vector<std::string> outputNames(const InputDescription& description);

/// Refuses names of another number of outputs. A single output may be the probability of the second of two
/// classes; without names nothing is refused. @throws InvalidArgument naming them.
void requireOutputs(const InputDescription& description, std::int64_t outputs);

/// What predictions for `data` mean: the model's description, or the data's if the model has none.
const InputDescription& knownDescription(const InputDescription& model, const DataSetIterator& data);

}  // namespace muster
