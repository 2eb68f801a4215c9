#include "muster/parallel/training/replica_steps.h"

#include <cmath>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/data/non_finite_value.h"
#include "muster/core/optim/finite_gradient.h"

namespace muster {

void ReplicaSteps::begin(MergeShares& shares, PeerSums& sums, Exchange& exchange, WorkerListeners& listeners,
                         const Ledger& start) {
  const auto worker = static_cast<std::size_t>(thread_.index());
  shares_ = &shares;
  sums_ = &sums;
  whyNoSums_ = start.arrivals         ? "but with asynchronous arrivals they are never in the same step"
               : exchange.nodes() > 1 ? "which is not supported over nodes yet"
                                      : "";
  thread_.context().setPeers(exchange.participants() == 1 ? nullptr : this);
  listeners_ = &listeners;
  updates_ = OwnUpdates::find(exchange, worker);
  contribution_ = start.workers[worker].unmerged;
  current_ = {.epoch = start.epoch};
  hadBatch_ = false;
  begun_.reset();  // a failed run may have left a step
}

void ReplicaSteps::sum(std::span<double> values) {
  require(whyNoSums_.empty(),
          "a layer adds up numbers between workers (synchronised batch normalisation), {}", whyNoSums_);
  {
    const Phase waiting(thread_.activity(), Activity::Kind::InExchange, waitedInStep_, current_.sequence);
    sums_->sum(thread_.index(), values);  // on one node
  }
  thread_.activity().set(Activity::Kind::Computing, current_.sequence);
}

void ReplicaSteps::train(Batch& batch) {
  batch.stamp.update = 0;  // of an earlier training
  if (!computesGradients()) stampUpdate(batch.stamp);
  current_ = batch.stamp;
  hadBatch_ = true;
  waitedInStep_ = std::chrono::nanoseconds(0);
  const StepTicket ticket = [&] {
    try {
      const Phase computing(thread_.activity(), Activity::Kind::Computing, times_.own.computing,
                            batch.stamp.sequence);
      return computesGradients() ? thread_.replica().gradient(batch) : thread_.replica().step(batch);
    } catch (...) {
      finish();  // if the step before has failed, this throws its exception instead
      throw;
    }
  }();
  times_.own.computing -= waitedInStep_;
  times_.own.waitingForWorkers += waitedInStep_;
  finish();
  begun_ = Step{ticket, batch.stamp, batch.examples()};
  if (computesGradients() || ticket.known() || !listeners_->listeners.empty())
    namingValues(batch, [&] { finish(); });
}

StepScore ReplicaSteps::awaitScore(const Step& step) {
  const Phase computing(thread_.activity(), Activity::Kind::Computing, times_.own.computing,
                        step.stamp.sequence);
  const StepScore score = step.ticket.wait();
  requireFinite(score);
  require(std::isfinite(score.weight) && score.weight >= 0,
          "a step's weight must be finite and not negative, got {}", score.weight);
  if (computesGradients()) {
    requireFiniteGradient(thread_.replica().block(BlockKind::Gradients));
    requireFiniteStatistics(thread_.replica().blocks());
  }
  return score;
}

void ReplicaSteps::finish() {
  if (!begun_) return;
  const Step step = *begun_;
  begun_.reset();
  const BatchStamp latest = std::exchange(current_, step.stamp);  // failures below are of this step
  const StepScore score = awaitScore(step);
  score_ = score.score;
  examples_ = step.examples;
  ++times_.own.batches;
  times_.own.examples += examples_;
  if (!std::exchange(contribution_.late, false)) count(step.stamp, step.examples, score.weight);
  contribution_.scoreSum += score.score * score.weight;
  contribution_.plainScoreSum += score.score;
  if (!computesGradients()) callListeners(score_);
  current_ = latest;
}

void ReplicaSteps::count(const BatchStamp& stamp, std::int64_t examples, double weight) {
  contribution_.weight += weight;
  contribution_.examples += examples;
  ++contribution_.batches;
  contribution_.iteration = stamp.iteration + 1;
}

bool ReplicaSteps::countWithoutScore() {
  if (!begun_ || !begun_->ticket.weight()) return false;
  count(begun_->stamp, begun_->examples, *begun_->ticket.weight());
  contribution_.late = true;
  return true;
}

void ReplicaSteps::lookAtReplica() {
  if (computesGradients()) return;
  Model& replica = thread_.replica();
  const bool unchecked = !replica.refusesNonFinite();
  if (!unchecked && !shares_->looksAtReplicas()) return;
  const Phase looking(thread_.activity(), Activity::Kind::Computing, times_.own.merging, current_.sequence);
  for (const auto& block : replica.blocks())
    if (block.kind == BlockKind::Parameters)
      contribution_.largest = requireFiniteBlock(block, "after its steps the parameters");
  if (unchecked) {
    requireFiniteStatistics(replica.blocks());
    for (const auto& block : replica.updaterState())
      requireFiniteBlock(block, "after its steps the updater's numbers");
  }
}

void ReplicaSteps::update(const Participant& me, const Decision& decision) {
  shares_->afterReduction(me, decision);
  const bool trained = contribution_.batches > 0;
  current_.epoch = decision.round.epoch;  // changes something only if the worker trained nothing
  current_.iteration = decision.after.iteration - 1;
  stampUpdate(current_);
  whole_ = false;
  double penalty = 0;
  try {
    const Phase computing(thread_.activity(), Activity::Kind::Computing, times_.own.computing,
                          current_.sequence);
    penalty = thread_.replica().update(current_);
  } catch (const UpdateRefused&) {
    whole_ = true;
    shares_->refuseUpdate();
    throw;
  }
  whole_ = true;
  if (trained) {
    requireFinite({.score = score_ + penalty});
    callListeners(score_ + penalty);
  }
  shares_->setUpdated(me.worker, penalty);
}

void ReplicaSteps::callListeners(double score) {
  if (listeners_->listeners.empty()) return;
  thread_.activity().set(Activity::Kind::WaitingForWorkers);  // another worker's listener may be running
  const Lock lock(listeners_->mutex);
  thread_.activity().set(Activity::Kind::InListener, current_.sequence);
  const IterationEvent event{listeners_->trainer, thread_.index(), current_, examples_, score};
  for (const auto& listener : listeners_->listeners) listener->onIteration(event);
}

}  // namespace muster
