#pragma once

#include <string>

#include "muster/core/eval/any_evaluation.h"

namespace muster {

/// All scores of an evaluation as JSON: the means, those of each class, column or label, and a
/// classification's confusion matrix. Errors of a table's targets are in the table's own units. A score that
/// is no finite number is left out.
std::string scoresJson(const AnyEvaluation& evaluation);

}  // namespace muster
