#include "muster/parallel/runtime/peer_sums.h"

#include <algorithm>
#include <utility>

namespace muster {

PeerSums::PeerSums(int workers, int together)
    : workers_(workers),
      together_(static_cast<std::size_t>(together)),
      slots_(static_cast<std::size_t>(workers)),
      participants_(workers) {}

void PeerSums::begin(int participants) {
  const Lock lock(mutex_);
  for (std::size_t w = 0; w < slots_.size(); ++w)
    slots_[w] = {.takesPart = w < static_cast<std::size_t>(participants)};
  participants_ = participants;
  arrived_ = 0;
  aborted_ = false;
  problem_.clear();
}

void PeerSums::leave(int worker) {
  const Lock lock(mutex_);
  Slot& slot = slots_[static_cast<std::size_t>(worker)];
  if (!std::exchange(slot.takesPart, false)) return;
  --participants_;
  if (arrived_ > 0 && arrived_ == participants_) complete();  // the others waited only for this worker
}

void PeerSums::abort() {
  const Lock lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

void PeerSums::sum(int worker, std::span<double> values) {
  Lock lock(mutex_);
  if (!aborted_) {
    const auto generation = generation_;
    slots_[static_cast<std::size_t>(worker)] = {.arrived = true, .values = values};
    if (++arrived_ == participants_)
      complete();
    else
      while (generation == generation_ && !aborted_) changed_.wait(lock.native());
    if (generation != generation_) return;
  }
  throw PeerFailure(problem_.empty() ? "another worker failed while this one waited for it" : problem_);
}

void PeerSums::complete() {
  const auto first = std::ranges::find_if(slots_, &Slot::arrived);
  for (const auto& slot : slots_)
    if (slot.arrived && slot.values.size() != first->values.size()) {
      problem_ = fmt::format("workers of one step must sum equally many values, not {} and {} values",
                             first->values.size(), slot.values.size());
      aborted_ = true;
      changed_.notify_all();
      return;
    }
  const auto add = [](std::span<const double> values, std::vector<double>& to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += values[i];
  };
  total_.assign(first->values.size(), 0.0);
  for (std::size_t begin = 0; begin < slots_.size(); begin += together_) {
    auto& sum = together_ == 1 ? total_ : ofNeighbours_;
    if (together_ > 1) ofNeighbours_.assign(total_.size(), 0.0);
    for (const Slot& slot : std::span(slots_).subspan(begin, std::min(together_, slots_.size() - begin)))
      if (slot.arrived) add(slot.values, sum);
    if (together_ > 1) add(ofNeighbours_, total_);
  }
  for (auto& slot : slots_) {
    if (slot.arrived) std::ranges::copy(total_, slot.values.begin());
    slot.arrived = false;
    slot.values = {};
  }
  arrived_ = 0;
  ++generation_;
  changed_.notify_all();
}

}  // namespace muster
