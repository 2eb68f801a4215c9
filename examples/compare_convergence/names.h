#pragma once

#include <string>

#include "examples/compare_convergence/grid.h"

namespace convergence {

/// An arm's name in tables and legends, such as `averaging every 10, 2 workers`. The name includes batch,
/// updater and learning rate if the grid has several of them, so it is unique in the grid.
std::string armName(const Arm& arm, const Grid& grid);

/// The name without the number of workers: `averaging every 10`; for one worker, with its batch.
std::string shortArmName(const Arm& arm);

/// For example `2 workers, batch 64 each, nesterovs at learning rate 0.02 (linear scaling)`.
std::string panelName(const Panel& panel);

/// For a file or directory: `averaging-w2-f10-b64-nesterovs-lr0.01-u0`.
std::string armFileName(const Arm& arm);

}  // namespace convergence
