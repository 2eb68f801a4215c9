#pragma once

#include <string_view>

#include "muster/parallel/run/run_file.h"

namespace muster::detail {

/// The run that a model file has in its notes. Accepts what an earlier version accepted and `RunFile::parse`
/// now refuses of a run to begin. @throws InvalidArgument.
RunFile savedRun(std::string_view json);

}  // namespace muster::detail
