#pragma once

// All strategies, for programs that train with several workers. CMake writes the list, from
// parallel/strategies/CMakeLists.txt.
#include "muster/strategies.h"  // IWYU pragma: export
