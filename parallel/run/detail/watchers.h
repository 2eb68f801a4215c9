#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "muster/core/listeners/early_stopping.h"
#include "muster/core/listeners/epoch_record.h"
#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/listeners/performance_listener.h"
#include "muster/core/nn/divergence_check.h"
#include "muster/core/nn/listener.h"
#include "muster/core/nn/network.h"
#include "muster/core/nn/training_state.h"
#include "muster/datasets/source/load_data.h"
#include "muster/parallel/run/detail/watching.h"
#include "muster/parallel/run/run_file.h"

namespace muster::detail {

/// Keeps the training state that a checkpoint needs in addition to the model.
struct LastState final : Listener {
  void onFitEnd(Trainer& trainer) override { state = trainer.trainingState(); }
  std::optional<TrainingState> state;  // empty until `fit()` ends on this node
};

/// Counts the merges.
struct MergeCount final : Listener {
  void onMerge(const MergeEvent& event) override {
    ++merges;
    bytes += event.bytes;
  }
  std::int64_t merges = 0, bytes = 0;  ///< bytes: of one worker to all merges together (MergeEvent::bytes)
};

/// The listeners of a training. The PerformanceListener comes first, so that it does not measure the others'
/// work between epochs.
struct Watchers {
  /// @param overNodes  whether other nodes train, too.
  explicit Watchers(bool overNodes)
      : performance(std::make_shared<PerformanceListener>(
            PerformanceOptions{.tableAtEnd = false, .overNodes = overNodes})) {}

  std::shared_ptr<PerformanceListener> performance;
  std::shared_ptr<DivergenceCheck> diverged;
  std::shared_ptr<LastState> last = std::make_shared<LastState>();
  std::shared_ptr<EarlyStopping> stopping;
  std::shared_ptr<EvaluationListener> tests;
  std::shared_ptr<EpochRecord> record;
  std::shared_ptr<MergeCount> merged = std::make_shared<MergeCount>();
  Listeners all{performance, last, merged};
};

/// What is printed of a training.
struct Shown {
  bool progress = true;    ///< lines or a bar, and the tests between epochs
  bool overNodes = false;  ///< speeds count the examples of other nodes
  bool terminal = false;   ///< a row for each worker and the curve of the score in the terminal
};

/// The listeners that a run file asks for. @param data  must outlive them.
/// @param network  before the training.
Watchers watch(const RunFile& run, LoadedData& data, Network& network, const Shown& shown);

/// @throws InvalidArgument naming a field of the listeners whose module this program was built without.
void requireModules(const RunListeners& listeners);

/// The page, TensorBoard and curves that a run file asks for.
/// @param first  whether this is the first node, the only one with a page.
/// @param shared  whether there are others.
/// @throws as Watching.
Watching watchingOf(const RunFile& run, const Watchers& watchers, bool first, bool shared);

/// The options by name, for the page and TensorBoard.
std::vector<HyperParameter> hyperParameters(const RunFile& run);

}  // namespace muster::detail
