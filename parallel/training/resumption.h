#pragma once

#include <string>

#include "muster/core/nn/model.h"
#include "muster/parallel/strategies/any_strategy.h"
#include "muster/parallel/training/ledger.h"

namespace muster {

/// What a `fit()` continues from: nothing, or the training state of the user's model.
struct Resumption {
  /// Where the run begins the epoch (Ledger::begun) and, if `replicas`, what the checkpoint holds of the
  /// ledger; see `resume`. With arrivals at the start of an epoch or after a stop it is not planned.
  Ledger ledger = {};
  /// Whether rule and number of workers are those of the checkpoint. Otherwise each worker starts from the
  /// merged copy.
  bool replicas = false;
  /// Whether the rule is that of the checkpoint, which was not made over elastic nodes. With other
  /// numbers of workers or nodes, they begin with means of what was saved, where that is possible.
  bool sameRule = false;
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

/// Adds ledger and rule to a training state.
void addLedger(TrainingState& state, const Ledger& ledger, const RuleText& rule);

/// What `addLedger` has added of a ledger. @throws SavedStateError for impossible numbers.
Ledger savedLedger(const TrainingState& state);

/// Adds the rule alone: each worker is to start from the merged copy.
void addRule(TrainingState& state, const RuleText& rule);

}  // namespace muster
