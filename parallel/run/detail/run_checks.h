#pragma once

#include <string>
#include <string_view>

#include "muster/parallel/run/run_file.h"

namespace muster::detail {

/// @throws InvalidArgument naming the field of a run file that is missing, out of range, or contradicts
///         another.
void checkRun(const RunFile& run);

/// As above, for what is refused only of a run to begin: a checkpoint of an earlier version may have it.
void checkNewRun(const RunFile& run);

/// As above, for what the kind of nodes excludes.
void checkNodes(const RunFile& run);

/// Replaces the name in a strategy's error, "strategy averaging: every must be ...", by the path of the
/// option, if it names one.
std::string strategyProblem(std::string_view what, const AnyStrategy& strategy);

}  // namespace muster::detail
