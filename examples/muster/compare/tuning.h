#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "examples/muster/compare/base_run.h"
#include "muster/core/comparison/comparison_grid.h"
#include "muster/core/comparison/tuned_arm.h"

namespace comparing {

/// The combinations of the values of all --tune for an arm, in the order given. A field that the arm sets
/// itself, or an option that its strategy does not have, is left out; none is left: the arm is not tuned.
/// @param tune  each `FIELD=VALUE,VALUE...`. @throws InvalidArgument.
std::vector<muster::TuningChoice> choicesOf(const muster::ComparisonArm& arm,
                                            const std::vector<std::string>& tune, const BaseRun& base);

/// The texts with the names that `known` has for their fields, as `learningRate=1` of
/// `network.updater.learningRate=1`, if an arm has both names for one.
std::vector<std::string> namedAs(const std::vector<std::string>& known, std::vector<std::string> tune,
                                 const std::vector<muster::ComparisonArm>& arms, const BaseRun& base);

/// Checks that each text is a field and its values, none of them twice. @throws InvalidArgument.
/// @param several  whether each needs more than one value. @param by  what gave it, for messages.
void checkValues(const std::vector<std::string>& tune, bool several, std::string_view by = "--tune");

/// Checks --tune, after `checkValues`, for all arms. @throws InvalidArgument naming what cannot be read or
/// has no arm.
/// @param by  what gave it, for messages.
void checkTune(const std::vector<std::string>& tune, const std::vector<muster::ComparisonArm>& arms,
               const BaseRun& base, std::string_view by = "--tune");

}  // namespace comparing
