#pragma once

#include <fmt/ranges.h>

#include <set>

#include "tests/support/recording_listener.h"
#include "tests/support/toy_model.h"

namespace muster::test {

/// The state that every merge includes: parameters and counters.
inline std::string mergedOf(ToyModel& model) {
  return fmt::format("{} {} {}", model.parameters(), model.iteration(), model.epoch());
}

/// A listener that records the model's state before the first merge, after each merge and after each epoch.
/// @param after  [merges] the states after so many
inline std::shared_ptr<Listener> recordStates(ToyModel& model, std::vector<std::set<std::string>>& after) {
  return mergedListener([&](const RecordedCall& call, Trainer& trainer) {
    if (call.event == "fitStart" || call.event == "merge") after.emplace_back();
    if (call.event == "epochStart" || call.event == "fitEnd") return;
    trainer.model();
    after.back().insert(mergedOf(model));
  });
}

}  // namespace muster::test
