#pragma once

#include <string>
#include <vector>

#include "examples/mnist_convnet/options.h"
#include "examples/support/data_sets.h"
#include "examples/support/epoch_record.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/listeners/collect_scores_listener.h"
#include "muster/core/listeners/performance_report.h"
#include "muster/core/nn/multi_layer_network.h"

namespace example {

/// Counts of merges.
struct Merged {
  std::int64_t merges = 0;
  std::int64_t bytes = 0;  ///< contributed by one worker to all merges together (MergeEvent::bytes)
};

/// Results of a run.
struct Results {
  const muster::Evaluation& test;
  const muster::PerformanceReport& training;
  const std::vector<muster::CollectScoresListener::Score>& epochs;  ///< of this run
  const EpochRecord& record;                                        ///< of the whole training
  Merged merged;
  double secondsInAll = 0;          ///< of the whole program
  std::int64_t epochsFinished = 0;  ///< including those of a resumed file
  bool interrupted = false;         ///< before the last epoch was finished
};

/// The test's result and the training's cost as text.
std::string describe(const Results& results);

/// Writes configuration and results as JSON to `options.json`.
/// @throws muster::FileError; then the file is unchanged.
void writeResults(const Results& results, const Options& options, const DataSets& data,
                  const muster::ParallelWrapper& wrapper, const muster::MultiLayerConfiguration& network);

}  // namespace example
