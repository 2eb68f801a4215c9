#pragma once

#include <string>

namespace program {

/// The schema of run files, for editors: JSON Schema, draft 2020-12.
std::string runFileSchema();

}  // namespace program
