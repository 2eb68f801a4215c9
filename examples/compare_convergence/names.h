#pragma once

#include <string>

#include "examples/compare_convergence/grid.h"

namespace convergence {

/// An arm as the table and the legends call it, as in `averaging every 10, 2 workers`. Batch, updater and
/// learning rate are named where the grid has several: so the names of a grid are different.
std::string armName(const Arm& arm, const Grid& grid);

/// Without the workers, for where they are named already: `averaging every 10`. One worker is told with its
/// batch.
std::string shortArmName(const Arm& arm);

/// As in `2 workers, batch 64 each, nesterovs at learning rate 0.02 (linear scaling)`.
std::string panelName(const Panel& panel);

/// For a file or directory: `averaging-w2-f10-b64-nesterovs-lr0.01-u0`.
std::string armFileName(const Arm& arm);

/// The same of one run: `averaging-w2-f10-b64-nesterovs-lr0.01-u0-seed1`.
std::string runFileName(const Arm& arm, std::int64_t seed);

}  // namespace convergence
