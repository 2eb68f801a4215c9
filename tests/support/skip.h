#pragma once

#include <string_view>

namespace muster::test {

/// Marks the running test case as skipped and says why; return from the case right after. The program then
/// ends with 77, which CTest shows as a skip, if every case that ran was skipped.
void skip(std::string_view reason);

/// The directory of the real MNIST (MUSTER_DATA_DIR), or nullptr where it is not set.
const char* realDataDir();

}  // namespace muster::test
