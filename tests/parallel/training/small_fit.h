#pragma once

#include "muster/parallel/strategies/averaging.h"
#include "muster/parallel/training/replica_set.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/toy_data.h"
#include "tests/support/toy_model.h"

namespace muster::test {

/// What the parts of a `fit()` need: a toy model of one parameter, its replicas, and the rest of a wrapper.
struct SmallFit {
  explicit SmallFit(int workers = 1, AnyStrategy rule = Averaging{}, ToyOptions toy = {},
                    const detail::Internals& internals = {})
      : model(std::move(toy)),
        options(std::move(rule)),
        replicas(model, std::vector<Placement>(static_cast<std::size_t>(workers)), 1, options, nullptr, 1,
                 internals) {
    model.state();  // makes the updater's state
    replicas.make();
    for (int i = 0; i < 4 * workers; ++i) batches.push_back(std::make_unique<Batch>());
  }

  FitSetting setting(FitParts* parts = nullptr) {
    return {.trainer = trainer,
            .model = model,
            .data = data,
            .replicas = replicas,
            .options = options,
            .batches = batches,
            .listeners = listeners,
            .reader = reader,
            .stop = stop,
            .caller = caller,
            .reading = reading,
            .patience = {},
            .prepared = prepared,
            .parts = parts};
  }
  /// See ReplicaSet::begin.
  bool load(const Resumption& from = {}) { return replicas.begin(from); }
  /// See ReplicaSet::fill.
  bool fill(bool afterFailure = false, bool together = true) {
    return replicas.fill(ledger, afterFailure, together);
  }
  ToyModel& replica(std::size_t worker) {
    return dynamic_cast<ToyModel&>(replicas.workers()[worker]->thread().replica());
  }
  float& merged(BlockKind kind = BlockKind::Parameters) {
    return replicas.exchange().block(kind).mergedCopy().data<float>()[0];
  }
  float parameter() { return model.parameters().front(); }

  ToyModel model;
  FakeTrainer trainer{model};
  AnyStrategy options;
  ToyIterator data = ToyIterator::ofValues({2, 6});
  std::vector<std::unique_ptr<Batch>> batches;
  Listeners listeners;
  std::atomic<bool> stop{false};
  Activity caller, reading;
  PreparedFit prepared;
  Ledger ledger;
  ReplicaSet replicas;  // this and below have threads
  TaskThread reader{"reader"};
};

}  // namespace muster::test
