#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/listener.h"
#include "muster/parallel/strategies/any_strategy.h"
#include "muster/parallel/training/replica_set.h"

namespace muster {

/// State that a `fit()` over elastic nodes keeps from one of its parts (generations) to the next.
struct FitParts {
  const std::atomic<bool>* regroup = nullptr;  // see RoundOptions
  std::vector<const Listener*> started = {};   // whose onFitStart was called
  bool ended = false;                          // whether onFitEnd was called
  /// The first batch of epoch 0, read to prepare the model; until it is trained, as an iterator may not be
  /// able to give it again.
  std::optional<Batch> first = {};
};

/// What a training begins with.
struct PreparedFit {
  Resumption resumed = {};
  std::optional<Batch> first = {};  ///< the first batch to train, if it was read to prepare the model
  /// The batches if the workers should read them themselves, without a reader thread; else null.
  const NumberedBatches* numbered = nullptr;
};

/// The parts of the wrapper that a `fit()` uses.
struct FitSetting {
  Trainer& trainer;  // for listeners
  Model& model;
  DataSetIterator& data;
  ReplicaSet& replicas;
  const AnyStrategy& options;                       // of the strategy
  std::span<const std::unique_ptr<Batch>> batches;  // circulate between reader and workers
  const Listeners& listeners;
  TaskThread& reader;
  std::atomic<bool>& stop;
  Activity& caller;   // what the thread that called `fit()` does
  Activity& reading;  // what the reader does
  std::chrono::nanoseconds patience;
  PreparedFit& prepared;
  FitParts* parts = nullptr;  // null: the fit has one part
};

}  // namespace muster
