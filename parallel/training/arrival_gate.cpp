#include "muster/parallel/training/arrival_gate.h"

#include <algorithm>

namespace muster {

void ArrivalGate::beginEpoch() {
  const Lock lock(mutex_);
  std::ranges::fill(states_, State::Running);
  over_ = false;
}

void ArrivalGate::abort() {
  const Lock lock(mutex_);
  abortNow();
}

void ArrivalGate::abortNow() {
  aborted_ = true;
  wakeAll();
}

bool ArrivalGate::complete() const {
  if (over_) return false;
  const auto next = next_();
  bool any = false;
  for (std::size_t w = 0; w < states_.size(); ++w) {
    if (next[w].arrives && states_[w] != State::Arrived) return false;
    any = any || next[w].arrives;
  }
  return any;
}

void ArrivalGate::release(std::span<const Arrival> landed) {
  for (std::size_t w = 0; w < states_.size(); ++w) {
    if (landed[w].arrives) states_[w] = State::Landed;
    if (!landed[w].resumes) continue;
    states_[w] = State::Running;
    changed_[w].notify_one();
  }
  refresh();
}

void ArrivalGate::refresh() {
  const auto next = next_();
  for (std::size_t w = 0; w < states_.size(); ++w)
    if ((next[w].arrives || anyEndEndsAll_) && states_[w] == State::Ended) over_ = true;
  if (over_) wakeAll();
}

}  // namespace muster
