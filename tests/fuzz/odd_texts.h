#pragma once

#include "tests/fuzz/target.h"

namespace muster::fuzz {

/// Texts that are not JSON, or JSON that a reader should refuse whatever its fields are.
const std::vector<std::string>& brokenJson();

/// Contents of other formats, which a reader of model files may name, and files that are too short.
const std::vector<Bytes>& foreignFiles();

}  // namespace muster::fuzz
