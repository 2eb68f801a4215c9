#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/listeners/merged_model_average.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/strategies/codec.h"

namespace muster::test {

// Note [Rules against NumPy]
// Every averaging rule is compared after every merge with an independent float64 script,
// tests/parallel/strategies/reference/<rule>.py. The problems are a quadratic whose curvature differs by
// batch and a small tanh network with softmax, trained by SGD at a constant learning rate and by Nesterov
// momentum at a falling one, with 3 and 4 workers, batches of 1 to 5 examples and partial last rounds, on CPU
// replicas and on pretended devices. To add a rule:
//
//   1. Write <rule>.py from the formulas in the paper: a class as common.py describes, and `main(Rule)`.
//   2. In <rule>_test.cpp, which CMakeLists.txt links to muster_test_rules, a case for its options:
//        TEST_CASE("against NumPy") {
//          if (!numpyFound()) return;  // a visible skip
//          checkAgainstNumpy("elastic_averaging", "frequency=3 alpha=0.3",
//                            ElasticAveraging{.frequency = 3, .alpha = 0.3});
//        }
//
// Tolerance: both sides compute in float64 from the same bits, so they differ by rounding. A training has at
// most 20 local steps and 20 merges; an element of a step is a sum of at most 5 * 6 products and a few
// functions, an element of a merge a sum of at most 4 replicas and a few operands: each below 100 roundings
// of numbers up to 1. The quadratic's steps contract; a difference grows with momentum 0.9 outside and 0.5
// inside at most 10 * 2 times, and with the network's curvature (Lipschitz constant below 4, learning rate
// 0.25, 20 steps of which only those along a negative curvature grow) no more than 10 times. 40 * 100 * 20 *
// 10 * 2^-53 < 1e-10. A wrong formula is off by 1e-3.
inline constexpr double kNumpyTolerance = 1e-10;

/// Whether `python3`, or the Python that MUSTER_NUMPY_PYTHON names, can import numpy; skips the test case if
/// not.
bool numpyFound();

/// Adds the strategy for this number of workers to a builder.
using StrategyFor = std::function<void(ParallelWrapper::Builder&, int workers)>;

/// Runs reference/<script>.py with these options, trains in the same way, and compares the user's model after
/// every merge.
/// @param options  "name=value name=value".
/// @param average  if set, compares the average of the merged models instead of the model.
void checkAgainstNumpy(std::string_view script, const std::string& options, const StrategyFor& strategy,
                       const std::optional<MergedModelAverageOptions>& average = {});

template <StrategyOptions T>
void checkAgainstNumpy(std::string_view script, const std::string& options, const T& strategy) {
  checkAgainstNumpy(script, options,
                    [&](ParallelWrapper::Builder& builder, int) { builder.strategy(strategy); });
}

/// Codecs by their names in the scripts, one of each elementwise kind. Codecs are discontinuous: a difference
/// in rounding changes what is sent only at a boundary, and these trainings never come within 1e-15 of one.
inline const std::vector<std::pair<std::string, Codec>>& codecsInNumpy() {
  static const std::vector<std::pair<std::string, Codec>> all = {{"bf16", Bf16Codec{}},
                                                                 {"int8", Int8Codec{}},
                                                                 {"e3m0", E3M0Codec{}},
                                                                 {"top:0.2", TopKCodec{.share = 0.2}}};
  return all;
}

}  // namespace muster::test
