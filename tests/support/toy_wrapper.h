#pragma once

#include <doctest/doctest.h>

#include "muster/parallel/parallel_wrapper.h"
#include "tests/support/toy_data.h"
#include "tests/support/toy_model.h"

namespace muster::test {

/// A builder for `workers` unpinned workers, because tests run in parallel on few cores.
inline ParallelWrapper::Builder toyWrapper(Model& model, int workers, std::int64_t frequency = 1) {
  auto builder = ParallelWrapper::Builder(model);
  builder.workers(workers).averagingFrequency(frequency).pinThreads(false);
  return builder;
}

/// Trains with unpinned workers that merge every `frequency` iterations; 0 workers: with Model::fit.
inline void fitWith(Model& model, int workers, DataSetIterator& data, std::int64_t epochs,
                    const Listeners& listeners = {}, std::int64_t frequency = 1) {
  if (workers > 0)
    return toyWrapper(model, workers, frequency).listeners(listeners).build().fit(data, epochs);
  model.setListeners(listeners);
  model.fit(data, epochs);
}

/// Checks that all replicas had the same values before their steps of an iteration.
/// @return the number of steps that were compared with an earlier one.
inline int checkReplicasEqual(const ToyControl& control) {
  std::map<std::int64_t, std::vector<float>> first;
  int compared = 0;
  for (const auto& step : control.steps())
    if (const auto [known, added] = first.emplace(step.stamp.iteration, step.before); !added) {
      CHECK(known->second == step.before);
      ++compared;
    }
  return compared;
}

/// Nesterov momentum with learning rate and momentum 0.5, easy to compute by hand.
inline TrainingOptions halfNesterovs() {
  return {.updater = Nesterovs{.learningRate = 0.5, .momentum = 0.5}};
}

}  // namespace muster::test
