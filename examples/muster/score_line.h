#pragma once

#include <span>
#include <string>

#include "muster/core/data/input_description.h"
#include "muster/core/eval/any_evaluation.h"

namespace program {

/// The main scores in a line, as `AnyEvaluation::line`; errors of a described regression are in its own
/// units.
std::string scoreLine(const muster::AnyEvaluation& evaluation, const muster::InputDescription& description);

/// All scores, as `AnyEvaluation::summary`; errors of a described regression are in its own units.
std::string scoreTable(const muster::AnyEvaluation& evaluation, const muster::InputDescription& description);

/// A sentence if held-out examples are predicted no better than by one answer for all of them: the commonest
/// class, or the mean of the numbers. "" if better, or for several labels an example.
/// @param classes  [class] names; may be empty.
std::string guessRemark(const muster::AnyEvaluation& evaluation, const muster::InputDescription& description,
                        std::span<const std::string> classes);

/// The columns that a network reads and those that it does not, with the reasons; "" without columns.
std::string columnsLine(const muster::InputDescription& description);

}  // namespace program
