#pragma once

#include <fmt/ranges.h>

#include <set>
#include <string>

#include "muster/core/nn/listener.h"
#include "tests/support/toy_model.h"

namespace muster::test {

/// The state that every merge includes: parameters and counters.
inline std::string mergedOf(ToyModel& model) {
  return fmt::format("{} {} {}", model.parameters(), model.iteration(), model.epoch());
}

/// Records the model's state after each merge and each epoch.
struct MergedStates final : Listener {
  explicit MergedStates(ToyModel& m) : model(m) {}
  void onMerge(const MergeEvent& event) override { take(event.trainer); }
  void onEpochEnd(const EpochEvent& event) override { take(event.trainer); }
  void take(Trainer& trainer) {
    trainer.model();
    states.insert(mergedOf(model));
  }
  ToyModel& model;
  std::set<std::string> states;
};

}  // namespace muster::test
