#pragma once

#include <cstdint>
#include <memory>

#include "muster/parallel/strategies/strategy.h"

namespace muster {

/// Every `frequency` iterations all state becomes the weighted mean over the replicas (statistics by their
/// own rule). Source: McDonald et al. 2010 (parameter mixing); Stich 2019 (local SGD).
struct Averaging {
  /// Iterations of each worker between merges. 1 to 2^40.
  std::int64_t frequency = 1;
  /// What a merge does with the updater's state.
  UpdaterState updaterState = UpdaterState::Average;
  /// Merge every iteration until the model has finished this many, and only then at the frequency. Source:
  /// Lin et al. 2020, "Don't use large mini-batches, use local SGD" (post-local SGD).
  std::int64_t synchronousUntil = 0;
  /// Measure before each merge how far the replicas are from their mean (MergeEvent::divergence): one more
  /// pass over the parameters.
  bool measureDivergence = false;

  /// @throws InvalidArgument naming the option out of range.
  void validate() const;
  std::unique_ptr<Strategy> make() const;
};

}  // namespace muster
