#pragma once

#include <string>

#include "muster/parallel/run/prepared_run.h"

namespace muster {

/// What the training of a prepared run would do, in lines: data, network, workers, merging, what it resumes,
/// remarks on the options, and the memory of each device. Ends with a newline.
std::string planText(PreparedRun& prepared);

}  // namespace muster
