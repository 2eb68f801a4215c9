#include "muster/core/nn/attached_state.h"

namespace muster::detail {
namespace {

std::vector<NamedValues> clone(const std::vector<NamedValues>& all) {
  std::vector<NamedValues> copies;
  for (const auto& [name, values] : all) copies.push_back({name, cloneTensor(values)});
  return copies;
}

}  // namespace

void AttachedState::copyAttached(const AttachedState& other) {
  strategyState_ = clone(other.strategyState_);
  listenerState_ = clone(other.listenerState_);
}

void AttachedState::clearAttached() {
  strategyState_.clear();
  listenerState_.clear();
  trainingState_.clear();
  loadedFrom_.clear();
}

}  // namespace muster::detail
