#pragma once

#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "tests/support/standard.h"
#include "tests/support/texts.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {

struct Failure {
  std::string text;
  int worker = -2;
  std::string cause;
};

/// Trains, and expects a TrainingError.
inline Failure failureOf(ParallelWrapper& wrapper, DataSetIterator& data, std::int64_t epochs = 1) {
  try {
    wrapper.fit(data, epochs);
  } catch (const TrainingError& error) {
    return {error.what(), error.worker(), describe(error.cause())};
  }
  return {"nothing failed", -2, ""};
}

/// Checks that the wrapper can be used again and computes correctly: each worker gets {4} twice; from p = 0
/// to 2, 3.
inline void checkTrainsAgain(ParallelWrapper& wrapper, ToyModel& model) {
  auto& control = model.control();
  control.onStep = {};
  control.reportedScore = {};
  control.reportedWeight = {};
  control.forgetSteps();
  model.setParameters({0});
  const auto epoch = model.epoch(), iteration = model.iteration();
  const auto workers = static_cast<std::size_t>(wrapper.options().workers);
  auto data = ToyIterator::ofValues(std::vector<float>(2 * workers, 4.0f));
  wrapper.fit(data);
  CHECK(model.parameters()[0] == 3);
  CHECK(model.epoch() == epoch + 1);
  CHECK(model.iteration() == iteration + 2);
  CHECK(control.steps().size() == 2 * workers);
}

[[noreturn]] inline void boom() {
  throw std::runtime_error("boom");
}

// The parameter after the first merge of two workers at frequency 2 on {2}, {6}, {2}, {6}, ...: worker 0 has
// 1, 1.5; worker 1 has 3, 4.5; merged 3.
constexpr float kMergedOnce = 3;
inline ToyIterator twosAndSixes() {
  return ToyIterator::ofValues({2, 6, 2, 6, 2, 6, 2, 6});
}

}  // namespace muster::test
