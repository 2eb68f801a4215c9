#pragma once

#include <memory>
#include <vector>

#include "examples/mnist_convnet/options.h"
#include "examples/mnist_convnet/results.h"
#include "examples/mnist_convnet/run_file.h"
#include "examples/support/data_sets.h"
#include "examples/support/epoch_record.h"
#include "examples/support/last_state.h"
#include "muster/core/listeners/collect_scores_listener.h"
#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/listeners/performance_listener.h"
#include "muster/core/nn/listener.h"

namespace example {

/// Counts the merges.
struct MergeCount final : muster::Listener {
  void onMerge(const muster::MergeEvent& event) override {
    ++merged.merges;
    merged.bytes += event.bytes;
  }
  Merged merged;
};

/// The listeners of a training. The PerformanceListener comes first, so that it does not measure the others'
/// work between epochs.
struct Watchers {
  /// @param overNodes  whether other nodes train, too.
  explicit Watchers(bool overNodes)
      : performance(std::make_shared<muster::PerformanceListener>(
            muster::PerformanceOptions{.tableAtEnd = false, .overNodes = overNodes})) {}

  std::shared_ptr<muster::PerformanceListener> performance;
  std::shared_ptr<muster::CollectScoresListener> scores = std::make_shared<muster::CollectScoresListener>();
  std::shared_ptr<muster::EvaluationListener> tests;
  std::shared_ptr<EpochRecord> record;
  std::shared_ptr<LastState> last = std::make_shared<LastState>();
  std::shared_ptr<MergeCount> merges = std::make_shared<MergeCount>();
  muster::Listeners all{performance, scores, last, merges};
};

/// The listeners that the options ask for. @param data  must outlive them.
Watchers makeWatchers(const Options& options, DataSets& data, const Recipe& recipe);

/// The options by name, for the page and TensorBoard.
std::vector<muster::HyperParameter> hyperParameters(const Options& options);

}  // namespace example
