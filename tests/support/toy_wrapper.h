#pragma once

#include "muster/parallel/parallel_wrapper.h"
#include "tests/support/toy_data.h"
#include "tests/support/toy_model.h"

namespace muster::test {

/// A builder for `workers` unpinned workers: tests run beside each other on few cores.
inline ParallelWrapper::Builder toyWrapper(Model& model, int workers, std::int64_t frequency = 1) {
  auto builder = ParallelWrapper::Builder(model);
  builder.workers(workers).averagingFrequency(frequency).pinThreads(false);
  return builder;
}

/// Nesterov momentum with numbers that are easily worked out: learning rate and momentum 0.5.
inline TrainingOptions halfNesterovs() {
  return {.updater = Nesterovs{.learningRate = 0.5, .momentum = 0.5}};
}

}  // namespace muster::test
