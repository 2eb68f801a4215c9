#pragma once

#include <string>

namespace muster {

/// The schema of run files, for editors: JSON Schema, draft 2020-12.
std::string runFileSchema();

}  // namespace muster
