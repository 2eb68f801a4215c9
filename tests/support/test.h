#pragma once

// What most tests need.

#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "tests/support/standard.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/texts.h"
#include "tests/support/thrown.h"

namespace muster::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace muster::test
