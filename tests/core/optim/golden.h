#pragma once

#include "tests/support/standard.h"

namespace muster::test {

struct GoldenStep {
  std::string_view name;
  std::int64_t iteration;
  double penalty;        // at the parameters before the step
  double parameters[7];  // after the step; five weights, two biases
};

struct GoldenRate {
  std::string_view schedule;
  std::int64_t iteration;
  double value;
};

#include "tests/core/optim/updater_golden.inc"

}  // namespace muster::test
