#pragma once

#include <string>
#include <vector>

#include "examples/mnist_convnet/options.h"
#include "examples/support/data_sets.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/listeners/collect_scores_listener.h"
#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/listeners/performance_report.h"
#include "muster/core/nn/multi_layer_network.h"

namespace example {

/// What the workers have merged.
struct Merged {
  std::int64_t merges = 0;
  std::int64_t bytes = 0;  ///< that a worker contributed to all of them together (MergeEvent::bytes)
};

/// What a run came to.
struct Results {
  const muster::Evaluation& test;
  const muster::PerformanceReport& training;
  const std::vector<muster::CollectScoresListener::Score>& epochs;  ///< of this run
  std::vector<muster::EvaluationListener::Result> tests;            ///< while it trained
  Merged merged;
  double secondsInAll = 0;          ///< of the program
  std::int64_t epochsFinished = 0;  ///< those of a resumed file included
  bool interrupted = false;         ///< before it had finished them all
};

/// The result of the test, and what the training took, for people.
std::string describe(const Results& results);

/// Writes configuration and results as JSON, for scripts, to `options.json`.
/// @throws muster::FileError; then the file is what it was before.
void writeResults(const Results& results, const Options& options, const DataSets& data,
                  const muster::ParallelWrapper& wrapper, const muster::MultiLayerConfiguration& network);

}  // namespace example
