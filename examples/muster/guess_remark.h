#pragma once

#include <span>
#include <string>

#include "muster/core/data/input_description.h"
#include "muster/core/eval/any_evaluation.h"

namespace program {

/// A sentence if held-out examples are predicted no better than by one answer for all of them: the commonest
/// class, or the mean of the numbers. "" if better, or for several labels an example.
/// @param classes  [class] names; may be empty.
std::string guessRemark(const muster::AnyEvaluation& evaluation, const muster::InputDescription& description,
                        std::span<const std::string> classes);

}  // namespace program
