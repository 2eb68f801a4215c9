#include "muster/core/listeners/detail/best_state.h"

#include <algorithm>
#include <utility>

namespace muster::detail {
namespace {

/// Prefixes of the names, after the caller's.
constexpr std::string_view kBlock = "block ", kStrategy = "strategy ";

/// Listener state may be on the model's device.
Tensor onCpu(const Tensor& values) {
  return values.device().isCpu() ? values : copyTo(values, Device::cpu());
}

/// Copies values to memory of the same names, which grows if it does not fit. @return whether it has moved.
bool copyValues(const std::vector<NamedValues>& from, std::vector<NamedValues>& to) {
  bool moved = to.size() != from.size();
  to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto& [name, values] = to[i];
    const void* const before = values.defined() ? values.raw() : nullptr;
    moved = moved || name != from[i].name;
    name = from[i].name;
    values.resize(from[i].values.shape(), from[i].values.dtype());
    moved = moved || values.raw() != before;
    copy(from[i].values, values);
  }
  return moved;
}

}  // namespace

bool BestState::take(Model& model) {
  bool moved = !std::exchange(whole_, false);
  model.context().synchronize();
  if (copies_.empty()) {
    std::vector<Tensor> state;
    std::vector<NamedValues> copies;
    for (const auto* block : model.state()) {
      if (block->kind == BlockKind::Gradients) continue;
      state.push_back(block->values);
      copies.push_back({block->name, {}});
    }
    const auto copied = copyTo(state, Device::cpu());
    for (std::size_t b = 0; b < state.size(); ++b) copies[b].values = copied[b];
    state_.swap(state);
    copies_.swap(copies);
  } else {
    for (std::size_t b = 0; b < state_.size(); ++b) copy(state_[b], copies_[b].values);
  }
  moved = copyValues(model.strategyState(), strategyState_) || moved;
  score_ = model.score();
  whole_ = true;
  return moved;
}

void BestState::giveBack(Model& model) const {
  model.context().synchronize();
  for (std::size_t b = 0; b < state_.size(); ++b) {
    Tensor target = state_[b];
    copy(copies_[b].values, target);
  }
  model.strategyState() = strategyState_;
  model.setScore(score_);
}

void BestState::putInto(TrainingState& state, const std::string& prefix) const {
  // The copies' memory is usually the same as before, so their names are not built again.
  const auto isThere = [&](const NamedValues& copied) {
    return std::ranges::any_of(state, [&](const NamedValues& one) {
      return one.values.raw() == copied.values.raw() && one.name.starts_with(prefix);
    });
  };
  if (std::ranges::all_of(copies_, isThere) && std::ranges::all_of(strategyState_, isThere)) return;
  for (const auto& [name, values] : copies_)
    putValues(state, fmt::format("{}{}{}", prefix, kBlock, name), values);
  for (const auto& [name, values] : strategyState_)
    putValues(state, fmt::format("{}{}{}", prefix, kStrategy, name), values);
}

bool BestState::read(Model& model, const std::string& prefix) {
  BestState read;
  read.score_ = score_;
  const auto& all = model.listenerState();
  for (const auto* block : model.state()) {
    if (block->kind == BlockKind::Gradients) continue;
    const Tensor* const saved = findValues(all, fmt::format("{}{}{}", prefix, kBlock, block->name));
    if (saved == nullptr || saved->shape() != block->values.shape() ||
        saved->dtype() != block->values.dtype()) {
      *this = {};
      return false;
    }
    read.state_.push_back(block->values);
    read.copies_.push_back({block->name, onCpu(*saved)});
  }
  const std::string ofStrategy = fmt::format("{}{}", prefix, kStrategy);
  for (const auto& [name, values] : all)
    if (name.starts_with(ofStrategy))
      read.strategyState_.push_back({name.substr(ofStrategy.size()), onCpu(values)});
  read.whole_ = true;
  *this = std::move(read);
  return true;
}

}  // namespace muster::detail
