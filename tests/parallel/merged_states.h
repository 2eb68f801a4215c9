#pragma once

#include <fmt/ranges.h>

#include <set>
#include <string>
#include <vector>

#include "muster/core/nn/listener.h"
#include "tests/support/toy_model.h"

namespace muster::test {

/// The state that every merge includes: parameters and counters.
inline std::string mergedOf(ToyModel& model) {
  return fmt::format("{} {} {}", model.parameters(), model.iteration(), model.epoch());
}

/// Records the model's state before the first merge, after each merge and after each epoch.
struct MergedStates final : Listener {
  explicit MergedStates(ToyModel& m) : model(m) {}
  void onFitStart(const FitEvent& event) override { take(event.trainer); }
  void onMerge(const MergeEvent& event) override {
    after.emplace_back();
    take(event.trainer);
  }
  void onEpochEnd(const EpochEvent& event) override { take(event.trainer); }
  void take(Trainer& trainer) {
    trainer.model();
    after.back().insert(mergedOf(model));
  }
  ToyModel& model;
  std::vector<std::set<std::string>> after = {{}};  ///< [merges] the states after so many
};

}  // namespace muster::test
