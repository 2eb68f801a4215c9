#include "muster/parallel/training/rounds.h"

#include <algorithm>
#include <utility>

#include "muster/parallel/runtime/phase.h"

namespace muster {

Rounds::Rounds(const NodePlace& place, const Options& options, Ledger start, PeerSums& peers,
               MergeShares& shares)
    : place_(place),
      options_(options),
      strategy_(options.strategy),
      peers_(peers),
      shares_(shares),
      start_(std::move(start)),
      rendezvous_(place.local, options.patience),
      contributions_(static_cast<std::size_t>(place.workers())),
      orders_(contributions_.size(), landsAlone()),
      transaction_(start_),
      messages_(place),
      plans_(options.strategy, shares.localWork(), options.learningRate) {
  for (std::size_t w = 0; w < contributions_.size(); ++w)
    contributions_[w] = start_.workers[w].unmerged;  // of workers that arrive in a later landing
  if (landsAlone())
    gate_.emplace(
        place.workers(), [this] { return ledger().arrivals->next(); }, onWallClock());
}

void Rounds::prepare() {
  transaction_.begin(options_.traits.fragments);
  if (isResumed()) plans_.requireSaved(ledger().plan);
}

void Rounds::begin(std::int64_t epochs) {
  lastEpoch_ = start_.epoch + epochs - 1;
  if (!isResumed()) planNext();
  for (int w = 0; w < place_.workers(); ++w) orders_.train(w, ledger());
}

Order Rounds::next(const Participant& me, const Contribution& mine) {
  const Order::Do done = orders_.of(me.worker).what;
  if (done == Order::Do::Train && gate_ && !mine.ended && !stopAsked()) return arrive(me, mine);
  const Phase waiting(me.activity, Activity::Kind::WaitingForWorkers, me.times.own.waitingForWorkers);
  bring(me, mine);
  // Two pointers: a std::function keeps no more without an allocation.
  if (!rendezvous_.arrive([this, &me] { return advance(me.exchange, orders_.of(me.worker).what); }))
    return {};
  const Order& order = orders_.of(me.worker);
  // Also after a round without a merge: the exchange may have fetched the replica, and must do so again.
  if (done != Order::Do::Visit && order.what != Order::Do::Merge) me.enqueueAfterMerge();
  return order;
}

/// What the others must know of the worker before it waits for them.
void Rounds::bring(const Participant& me, const Contribution& mine) {
  const Order::Do done = orders_.of(me.worker).what;
  const auto contribute = [&] { contributions_[at(me)] = mine; };
  if (done == Order::Do::Train) {
    if (!gate_ && onWallClock() && (mine.ended || ledger().arrivals->hasArrived(me.worker, mine.batches)))
      landingDue_ = true;
    gate_ ? gate_->end(me.worker, contribute) : contribute();  // a landing worker may be reading them all
  } else {
    contribute();  // with late scores
  }
  // So that listeners of the round see the times.
  if (done != Order::Do::Train || mine.batches == 0) me.times.publish();
  // After an update the coordinator may look at the replica.
  if (done == Order::Do::Train || done == Order::Do::Update) me.arriveAtExchange();
  if (done == Order::Do::Train && !gate_) shares_.keep(me.worker);  // while this worker waits
}

Rendezvous::Turn Rounds::advance(Exchange& exchange, Order::Do done) {
  if (done == Order::Do::Visit) return Rendezvous::Turn::Coordinator;
  if (done == Order::Do::Train) {
    agree(exchange);
    decide(/*met=*/true);
    if (result().merging) return giveAll(Order::Do::Merge);
  }
  if (done == Order::Do::Merge && shares_.localWork() == LocalWork::Gradient) {
    transaction_.allCarryOut();  // from now on each worker updates its replica, even if another one fails
    return giveAll(Order::Do::Update);
  }
  commit();
  if (isJoined()) return Rendezvous::Turn::Coordinator;
  answerNodes(exchange);
  giveNextRound();
  return Rendezvous::Turn::Workers;
}

/// Sends contributions and votes to every node, so that all nodes make the same decision.
void Rounds::agree(Exchange& exchange) {
  votes_ = {.stop = stopAsked(),
            .pause = options_.regroup != nullptr && *options_.regroup,
            .listens = options_.coordinatorJoinsEveryRound,
            .measures = options_.divergenceRead};
  votes_ = messages_.agree(exchange, contributions_, votes_);
  if (votes_.stop) options_.stop = true;
}

void Rounds::decide(bool met) {
  shares_.keepLast(std::ranges::max(contributions_, {}, &Contribution::largest).largest, gate_.has_value());
  transaction_.decide(contributions_, votes_, {.met = met, .pending = strategy_.pending()});
  if (result().verdict == Verdict::EpochOver) peers_.beginAll();  // all workers wait, none is inside a step
  landingDue_ = false;
  shares_.begin();
  if (result().merging) strategy_.prepare(decision().call());
  if (!result().merging || (shares_.localWork() == LocalWork::Step && decision().scored))
    transaction_.allCarryOut();
}

void Rounds::commit() {
  transaction_.commit(contributions_, shares_.penalty());
  if (gate_ && ledger().verdict == Verdict::EpochOver) gate_->beginEpoch();
  planNext();
}

bool Rounds::isOver() const {
  return endsRun(result().verdict) ||
         (result().verdict == Verdict::EpochOver && result().epoch == lastEpoch_);
}

Rendezvous::Turn Rounds::giveAll(Order::Do what) {
  orders_.giveAll({.what = what});
  return Rendezvous::Turn::Workers;
}

void Rounds::resume() {
  giveNextRound();
  rendezvous_.release();
}

Order Rounds::arrive(const Participant& me, const Contribution& mine) {
  const auto enter = [&] {
    contributions_[at(me)] = mine;
    Ledger& now = transaction_.ledger();
    now.workers[at(me)].unmerged = mine;
    if (onWallClock()) now.arrivals->arrive(me.worker);
    me.arriveAtExchange();
  };
  const auto leave = [&] {
    me.enqueueAfterMerge();
    orders_.train(me.worker, ledger());
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
  return passed ? orders_.of(me.worker) : Order{};
}

std::span<const Arrival> Rounds::land(const Participant& me) {
  {
    const Phase merging(me.activity, Activity::Kind::Merging, me.times.own.merging);
    decide(/*met=*/false);
    shares_.mergeAll(me, decision());
    commit();
  }
  me.activity.set(Activity::Kind::WaitingForWorkers);
  return ledger().arrivals->landing();
}

void Rounds::abort() {
  rendezvous_.abort();
  if (gate_) gate_->abort();
}

void Rounds::close() {
  transaction_.close(contributions_, shares_.penalty(), shares_.failed());
}

void Rounds::loseMerge() {
  shares_.lose();
  transaction_.revoke();
}

}  // namespace muster
