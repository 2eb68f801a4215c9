#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/listeners/merged_model_average.h"

namespace muster::test {

// Note [Rules against NumPy]
// Every averaging rule is compared after every merge with an independent float64 script,
// tests/parallel/strategies/reference/<rule>.py. The problems are a quadratic whose curvature differs by
// batch and a small tanh network with softmax, trained by SGD at a constant learning rate and by Nesterov
// momentum at a falling one, with 3 and 4 workers, batches of 1 to 5 examples and partial last rounds, on CPU
// replicas and on pretended devices. To add a rule:
//
//   1. Write <rule>.py from the formulas in the paper: a class as common.py describes, and `main(Rule)`.
//   2. Add a case to numpy_test.cpp with a row for each choice of options.
//
// Tolerance: both sides compute in float64 from the same bits, so they differ by rounding. A training has at
// most 20 local steps and 20 merges; an element of a step is a sum of at most 5 * 6 products and a few
// functions, an element of a merge a sum of at most 4 replicas and a few operands: each below 100 roundings
// of numbers up to 1. The quadratic's steps contract; a difference grows with momentum 0.9 outside and 0.5
// inside at most 10 * 2 times, and with the network's curvature (Lipschitz constant below 4, learning rate
// 0.25, 20 steps of which only those along a negative curvature grow) no more than 10 times. 40 * 100 * 20 *
// 10 * 2^-53 < 1e-10. A wrong formula is off by 1e-3.
inline constexpr double kNumpyTolerance = 1e-10;

/// A rule by its name and options in words, and its script's options: "name=value name=value". In both
/// {codec} is each elementwise codec in turn, {half} the size of a group: half of the workers if they are
/// even, else 1; {speeds} are those of the workers.
struct NumpyRow {
  std::string strategy, options, script;
};

/// Runs reference/<script>.py with each row's options, trains in the same way, and compares the user's model
/// after every merge. The case is skipped if neither `python3`, nor the Python that MUSTER_NUMPY_PYTHON
/// names, can import numpy.
/// @param average  if set, compares the average of the merged models instead of the model.
void checkAgainstNumpy(std::string_view script, const std::vector<NumpyRow>& rows,
                       const std::optional<MergedModelAverageOptions>& average = {});

}  // namespace muster::test
