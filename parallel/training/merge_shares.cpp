#include "muster/parallel/training/merge_shares.h"

#include <algorithm>
#include <utility>


namespace muster {
namespace {

/// Does a part of the participant's merge. @return how long it took.
template <typename Part>
std::chrono::nanoseconds timed(const Participant& me, Part part) {
  const auto before = me.times.own.merging;
  {
    const Phase phase(me.activity, Activity::Kind::Merging, me.times.own.merging);
    part();
  }
  return me.times.own.merging - before;
}

}  // namespace

/// Calls a part of a merge. If it throws, the merge has failed.
template <typename Merge>
void MergeShares::orLose(Merge merge) {
  try {
    merge();
  } catch (...) {
    lose();
    throw;
  }
}

void MergeShares::contribute(const Participant& me, double weight) {
  if (traits_.arrivals) return;
  of(me).contributing = timed(me, [&] {
    me.arriveAtExchange();
    MergeOps ops(me.exchange, me.worker, me.context, MergeOps::Waiting::None);
    strategy_.contribute(weight, ops);
  });
}

void MergeShares::merge(const Participant& me, const Decision& decision) {
  const auto merging = timed(me, [&] {
    me.exchange.begin(me.worker);
    MergeOps ops(me.exchange, me.worker, me.context,
                 traits_.arrivals ? MergeOps::Waiting::NoSums : MergeOps::Waiting::Any);
    orLose([&] { decision.after.flights.call(strategy_, decision.call(), ops); });
    of(me).bytes = ops.bytes();
    me.exchange.end(me.worker);
  });
  of(me).merging = merging + std::exchange(of(me).contributing, {});
}

void MergeShares::afterReduction(const Participant& me, const Decision& decision) {
  MergeOps ops(me.exchange, me.worker, me.context);
  orLose([&] { strategy_.afterReduction(decision.call(), ops); });
  of(me).bytes += ops.bytes();
  me.exchange.end(me.worker);
}

void MergeShares::mergeAll(const Participant& me, const Decision& decision) {
  const AllOnFirst first(me.exchange);
  orLose([&] {
    me.exchange.begin(0);
    MergeOps ops(me.exchange, 0, me.context, MergeOps::Waiting::NoSums);
    decision.after.flights.call(strategy_, decision.call(), ops);
    me.exchange.end(0);
  });
}

void MergeShares::keepLast(double largest, bool alone) {
  // Merges multiply by factors up to about 2^20: numbers below kLarge stay far from overflow.
  constexpr double kLarge = 0x1p40;
  const bool mayOverflow = looksAtReplicas() && largest > kLarge;
  if (undo_->everyMerge() ? alone : mayOverflow) undo_->keepAll();
  mergeKept_ = undo_->everyMerge() || mayOverflow;
}

std::chrono::nanoseconds MergeShares::time() const {
  return std::ranges::max(shares_, {}, &Share::merging).merging;
}

std::int64_t MergeShares::bytes() const {
  std::int64_t bytes = 0, contributors = 0;
  for (const Share& share : shares_) {
    bytes += share.bytes;
    contributors += share.bytes > 0 ? 1 : 0;
  }
  return contributors > 0 ? bytes / contributors : 0;
}

double MergeShares::penalty() const {
  const auto updated = std::ranges::find_if(shares_, [](const Share& s) { return s.penalty.has_value(); });
  return updated == shares_.end() ? 0 : *updated->penalty;
}

void MergeShares::refuseUpdate() {
  auto none = Loss::None;
  loss_.compare_exchange_strong(none, Loss::Update);  // a failed merge needs more to be undone
}

}  // namespace muster
