#pragma once

// All layers, for programs that build networks. CMake writes the list, from core/nn/layers/CMakeLists.txt.
#include "muster/layers.h"  // IWYU pragma: export
