#pragma once

#include "muster/parallel/run/run_file.h"

namespace muster {

/// A run to begin with for a table (`csv`) or a folder of pictures (`images`), as `muster example` prints it:
/// a small network, a part of the examples held out, and early stopping by it. It reads the data, and logs
/// which columns it leaves out. `training.model` is named after the data.
/// @param data  its type, its training examples and how they are read; what is held out and the size of a
///        batch are chosen.
/// @throws InvalidArgument for other types of data, a single class, or too few rows or pictures; FileError.
RunFile suggestedRun(DataSource data);

}  // namespace muster
