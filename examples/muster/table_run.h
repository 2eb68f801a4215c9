#pragma once

#include "examples/muster/run_file.h"

namespace program {

/// A run on a table: a small network, a held-out part of the rows, and early stopping by it.
/// @throws FileError as describeTable; InvalidArgument for a single class or too few rows.
RunFile tableRun(RunData data);

}  // namespace program
