#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/core/nn/model.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/strategies/any_strategy.h"
#include "muster/parallel/training/ledger.h"

namespace muster {

/// What a `fit()` continues from: nothing, or the training state of the user's model.
struct Resumption {
  EpochPosition position = {};
  /// Whether rule and number of workers are those of the checkpoint. Otherwise each worker starts from the
  /// merged copy.
  bool replicas = false;
  /// Whether the rule is that of the checkpoint, which was not made over elastic nodes. With other
  /// numbers of workers or nodes, they begin with means of what was saved, where that is possible.
  bool sameRule = false;
  /// What the checkpoint holds of the ledger; see `resume`. Set if `replicas`, except with arrivals at the
  /// start of an epoch or after a stop.
  std::optional<Ledger> ledger = {};
  /// [worker] trained by the checkpoint's `fit()`; set if `replicas`.
  std::vector<std::int64_t> examples = {};
  /// What merged copies and replicas hold, if the rule is that of the checkpoint.
  TrainingState values = {};
  bool any = false;
};

/// The text by which checkpoints and nodes distinguish rules.
struct RuleText {
  std::string description;
  std::string options;  ///< as in "every=3,momentum=0.9"; "" without `fields`
};
/// The text of a strategy. @param all  false: without options that do not change results.
RuleText ruleText(AnyStrategy strategy, bool all = false);

/// Reads the training state of the user's model. A log line says what cannot be used.
/// @throws SavedStateError for a state that holds impossible numbers.
Resumption resumptionOf(Model& model, const DataSetIterator& data, const AnyStrategy& strategy, int workers);

/// Adds ledger and rule to a training state. @param examples  [worker] trained since `fit()` began.
void addLedger(TrainingState& state, const Ledger& ledger, const RuleText& rule,
               std::span<const std::int64_t> examples);

/// What `addLedger` has added of a ledger. @param workers  as many as `examples` has.
/// @throws SavedStateError for impossible numbers, or another number of workers.
Ledger savedLedger(const TrainingState& state, std::size_t workers);

/// Adds the rule alone: each worker is to start from the merged copy.
void addRule(TrainingState& state, const RuleText& rule);

/// The state of one block on all nodes.
struct CollectedBlock {
  Tensor replicas = {};  ///< in worker order; undefined: not collected, so those of this node are saved
  Tensor mean = {};      ///< with which another number of workers starts; undefined: with the merged copy
};

/// Adds what the user's model does not hold: each block's merged copy if its values differ from the model's,
/// and the replicas' if theirs differ from the merged copy. Call it while no worker runs.
/// @param ofModel  [block] what the user's model was filled from.
/// @param mergedCopiesCount  false with LocalWork::Gradient: only the replicas are current.
/// @param collected  [block]
void addValues(TrainingState& state, std::span<const SharedBlock> blocks, std::span<const Tensor> ofModel,
               bool mergedCopiesCount, std::span<const CollectedBlock> collected);
/// Fills merged copies and replicas from `state`, once they hold the user's model. Call it while no worker
/// runs.
/// @param replicas  false: replicas take the merged copies.
void takeValues(const TrainingState& state, Exchange& exchange, bool replicas);

}  // namespace muster
