#include "muster/parallel/training/rounds.h"

namespace muster {

Order orderToTrain(const Ledger& ledger, int worker, bool alone) {
  return {.what = Order::Do::Train,
          .iterations = iterations(ledger, worker, alone),
          .merged = ledger.workers[static_cast<std::size_t>(worker)].unmerged.batches == 0,
          .epochOver = ledger.verdict == Verdict::EpochOver};
}

Rounds::Rounds(const NodePlace& place, RoundDecisions& decisions, PeerSums& peers, MergeShares& shares)
    : decisions_(decisions),
      peers_(peers),
      shares_(shares),
      rendezvous_(place.local, options().patience),
      orders_(decisions.start().workers.size()) {
  if (decisions.landsAlone())
    gate_.emplace(
        place.workers(), [this] { return decisions_.ledger().arrivals->next(); }, onWallClock());
}

void Rounds::begin(std::int64_t epochs) {
  decisions_.begin(epochs);
  for (std::size_t w = 0; w < orders_.size(); ++w) orderToTrain(static_cast<int>(w));
}

Order Rounds::next(const Participant& me, const Contribution& mine) {
  const Order::Do done = first(me.worker).what;
  if (done == Order::Do::Train && gate_ && !mine.ended && !stopAsked()) return arrive(me, mine);
  std::optional<Phase> waiting(std::in_place, me.activity, Activity::Kind::WaitingForWorkers,
                               me.times.own.waitingForWorkers);
  bring(me, mine);
  // Two pointers: a std::function keeps no more without an allocation.
  if (!rendezvous_.arrive([this, &me] { return advance(me.exchange, first(me.worker).what); })) return {};
  const Order order = first(me.worker);
  // Also after a round without a merge: the exchange may have fetched the replica, and must do so again.
  if (done != Order::Do::Visit && order.what != Order::Do::Merge) me.enqueueAfterMerge();
  waiting.reset();
  if (order.what == Order::Do::Train || order.what == Order::Do::End)
    me.times.own.waitingForWorkers -= std::min(listened_, me.times.own.waitingForWorkers);
  return order;
}

/// What the others must know of the worker before it waits for them.
void Rounds::bring(const Participant& me, const Contribution& mine) {
  const Order::Do done = first(me.worker).what;
  const auto contribute = [&] { decisions_.of(me.worker) = mine; };
  if (done == Order::Do::Train) {
    if (!gate_ && onWallClock() &&
        (mine.ended || decisions_.ledger().arrivals->hasArrived(me.worker, mine.batches)))
      landingDue_ = true;
    gate_ ? gate_->end(me.worker, contribute) : contribute();  // a landing worker may be reading them all
  } else {
    contribute();  // with late scores
  }
  // So that listeners of the round see the times, without their own, which a visit's wait has.
  if (done != Order::Do::Visit && (done != Order::Do::Train || mine.batches == 0)) me.times.publish();
  // After an update the coordinator may look at the replica.
  if (done == Order::Do::Train || done == Order::Do::Update) me.arriveAtExchange();
  if (done == Order::Do::Train && !gate_) shares_.keep(me.worker);  // while this worker waits
}

Rendezvous::Turn Rounds::advance(Exchange& exchange, Order::Do done) {
  if (done == Order::Do::Visit) return Rendezvous::Turn::Coordinator;
  if (done == Order::Do::Train) {
    decide(exchange);
    if (decisions_.result().merging) return giveAll(Order::Do::Merge);
  }
  if (done == Order::Do::Merge && shares_.localWork() == LocalWork::Gradient) {
    decisions_.beginUpdates();
    return giveAll(Order::Do::Update);
  }
  decisions_.commit();
  if (gate_ && decisions_.verdict() == Verdict::EpochOver) gate_->beginEpoch();
  listened_ = {};
  if (isJoined()) return Rendezvous::Turn::Coordinator;
  answerNodes(exchange);
  giveNextRound();
  return Rendezvous::Turn::Workers;
}

void Rounds::decide(Exchange& exchange) {
  const Votes& votes = decisions_.agree(exchange, {.stop = stopAsked(),
                                                   .pause = options().regroup && *options().regroup,
                                                   .listens = options().coordinatorJoinsEveryRound,
                                                   .measures = options().divergenceRead});
  if (votes.stop) options().stop = true;
  decisions_.decide(/*met=*/true);
  landingDue_ = false;
  // All workers wait, none is inside a step.
  if (decisions_.verdict() == Verdict::EpochOver) peers_.beginAll();
}

Rendezvous::Turn Rounds::giveAll(Order::Do what) {
  std::ranges::fill(orders_, Order{.what = what});
  return Rendezvous::Turn::Workers;
}

void Rounds::giveNextRound() {
  const Ledger& now = decisions_.ledger();
  for (std::size_t w = 0; w < orders_.size(); ++w) {
    orderToTrain(static_cast<int>(w));
    orders_[w].counters = {now.iteration, now.epoch};
    if (decisions_.isOver()) orders_[w].what = Order::Do::End;
  }
}

void Rounds::orderToTrain(int worker) {
  orders_[static_cast<std::size_t>(worker)] =
      muster::orderToTrain(decisions_.ledger(), worker, gate_.has_value());
}

void Rounds::resume(std::chrono::nanoseconds listened) {
  listened_ = listened;
  giveNextRound();
  rendezvous_.release();
}

Order Rounds::arrive(const Participant& me, const Contribution& mine) {
  const auto enter = [&] {
    decisions_.arrive(me.worker, mine);
    me.arriveAtExchange();
  };
  const auto leave = [&] {
    me.enqueueAfterMerge();
    orderToTrain(me.worker);
  };
  const auto merging = me.times.own.merging;
  bool passed = false;
  {
    const Phase waiting(me.activity, Activity::Kind::WaitingForWorkers, me.times.own.waitingForWorkers);
    passed = gate_->pass(
        me.worker, enter, [&] { return land(me); }, leave);
  }
  me.times.own.waitingForWorkers -= me.times.own.merging - merging;
  me.times.publish();
  return passed ? first(me.worker) : Order{};
}

std::span<const Arrival> Rounds::land(const Participant& me) {
  {
    const Phase merging(me.activity, Activity::Kind::Merging, me.times.own.merging);
    decisions_.decide(/*met=*/false);
    shares_.mergeAll(me, decisions_.decision());
    decisions_.commit();
  }
  me.activity.set(Activity::Kind::WaitingForWorkers);
  return decisions_.ledger().arrivals->landing();
}

void Rounds::abort() {
  rendezvous_.abort();
  if (gate_) gate_->abort();
}

}  // namespace muster
