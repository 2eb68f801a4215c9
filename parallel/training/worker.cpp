#include "muster/parallel/training/worker.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/data/non_finite_value.h"
#include "muster/core/optim/finite_gradient.h"
#include "muster/parallel/exchange/node_transport.h"
#include "muster/parallel/runtime/phase.h"

namespace muster {

class Worker::Peer final : public Peers {
 public:
  /// Sets the peers of the worker's context, unless the worker is `alone`. The destructor unsets them.
  Peer(Worker& worker, PeerSums& exchange, bool alone, bool overNodes, bool arrivals)
      : worker_(worker), exchange_(exchange), overNodes_(overNodes), arrivals_(arrivals) {
    worker_.thread_.context().setPeers(alone ? nullptr : this);
  }
  ~Peer() override { worker_.thread_.context().setPeers(nullptr); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void sum(std::span<double> values) override {
    require(
        !arrivals_,
        "a layer adds up numbers between workers (synchronised batch normalisation), but with asynchronous "
        "arrivals they are never in the same step");
    require(!overNodes_,
            "a layer adds up numbers between workers (synchronised batch normalisation), which is not "
            "supported over nodes yet");
    {
      const Phase waiting(worker_.thread_.activity(), Activity::Kind::InExchange, worker_.waitedInStep_,
                          worker_.current_.sequence);
      exchange_.sum(worker_.local_, values);
    }
    worker_.thread_.activity().set(Activity::Kind::Computing, worker_.current_.sequence);
  }

 private:
  Worker& worker_;
  PeerSums& exchange_;
  const bool overNodes_, arrivals_;
};

Worker::Worker(int index, int local, const Placement& placement, int threads)
    : local_(local), thread_("worker", index, placement, threads) {
  resetTimes();
}

void Worker::resetTimes() {
  times_.own = {.worker = thread_.index(), .device = thread_.placement().device};
  times_.publish();
}

void Worker::train(Tasks& tasks, FitRun& run, Exchange& exchange, WorkerListeners& listeners) {
  thread_.addTo(tasks, Activity::Kind::WaitingForData, [this, &run, &exchange, &listeners] {
    const Participant me{thread_.index(), exchange, thread_.context(), times_, thread_.activity()};
    contribution_ = run.rounds.start().workers[static_cast<std::size_t>(me.worker)].unmerged;
    current_ = {.epoch = run.rounds.start().epoch};
    hadBatch_ = false;
    updates_ = OwnUpdates::find(exchange, static_cast<std::size_t>(thread_.index()));
    begun_.reset();  // a failed run may have left a step
    const Peer peer(*this, run.peers, exchange.participants() == 1, exchange.nodes() > 1,
                    run.rounds.start().arrivals.has_value());
    try {
      batches_.begin(run, local_, thread_.activity(), times_);
      obey(run, me, listeners);
    } catch (const NodeFailure&) {
      run.fail(-1, std::current_exception(), [&] {
        return fmt::format(
            "the training on {} nodes has failed {}", exchange.nodes(),
            hadBatch_ ? "after " + current_.toString() : "before the first batch of " + thread_.name());
      });
    } catch (...) {
      run.fail(batches_.reading() ? -1 : thread_.index(), std::current_exception(),
               [this] { return failure(); });
    }
    times_.publish();
  });
}

std::string Worker::failure() const {
  if (batches_.reading())
    return fmt::format("the data iterator failed at {}", batches_.reading()->toString());
  if (!hadBatch_) return fmt::format("{} failed before its first batch", thread_.name());
  const auto kind = thread_.activity().kind();
  const std::string_view where = kind == Activity::Kind::Computing    ? "in"
                                 : kind == Activity::Kind::InListener ? "in a listener after"
                                 : kind == Activity::Kind::InExchange ? "in a sum over the workers in"
                                                                      : "at the merge after";
  return fmt::format("{} failed {} {}", thread_.name(), where, current_.toString());
}

void Worker::obey(FitRun& run, const Participant& me, WorkerListeners& listeners) {
  for (Order order = run.rounds.first(me.worker);; order = run.rounds.next(me, contribution_)) {
    switch (order.what) {
      case Order::Do::Train:
        if (order.counters) thread_.replica().setCounters(order.counters->iteration, order.counters->epoch);
        if (order.merged) contribution_ = {.ended = contribution_.ended && !order.epochOver};
        if (!runRound(run, me, order.iterations, listeners)) return;
        if (contribution_.batches == 0) break;
        lookAtReplica(run.shares);
        run.shares.contribute(me, contribution_.weight);
        break;
      case Order::Do::Merge:
        run.shares.merge(me, run.rounds.decision());
        if (contribution_.late) finishStep(run, listeners);
        break;
      case Order::Do::Update:
        update(run, me, listeners);
        break;
      case Order::Do::Visit:
        (*order.visit)(local_);
        break;
      case Order::Do::End:
        if (order.counters) thread_.replica().setCounters(order.counters->iteration, order.counters->epoch);
        return;
    }
  }
}

bool Worker::runRound(FitRun& run, const Participant& me, std::int64_t iterations,
                      WorkerListeners& listeners) {
  for (std::int64_t done = 0; done < iterations && !contribution_.ended && !run.stopping(); ++done) {
    if (done > 0 && run.rounds.landingDue()) break;
    run.requireNodes();
    const auto batch = batches_.next();
    if (!batch) return false;
    if (*batch == nullptr) {
      contribution_.ended = true;
      run.peers.leave(local_);
      break;
    }
    // After a stop during the wait, the batch is not trained.
    if (!run.stopping())
      work(**batch, run, listeners);
    else
      contribution_.untrained = (*batch)->stamp.sequence;
    if (!batches_.done(*batch)) return false;
  }
  const bool resumes = begun_ && !contribution_.ended && !run.stopping();
  if (resumes && begun_->ticket.weight() && run.shares.mergesBeforeScores(me.exchange)) {
    count(begun_->stamp, begun_->examples, *begun_->ticket.weight());
    contribution_.late = true;
    return true;
  }
  finishBegun(run, listeners);  // only finished steps with finite scores are merged
  if (run.stopping()) {
    run.peers.leave(local_);  // other workers may have begun a step before the stop
    batches_.giveBack();
  }
  return true;
}

void Worker::work(Batch& batch, FitRun& run, WorkerListeners& listeners) {
  const bool gradientAlone = run.shares.localWork() == LocalWork::Gradient;
  batch.stamp.update = 0;  // of an earlier training
  if (!gradientAlone) stampUpdate(batch.stamp);
  current_ = batch.stamp;
  hadBatch_ = true;
  waitedInStep_ = std::chrono::nanoseconds(0);
  const StepTicket ticket = [&] {
    try {
      const Phase computing(thread_.activity(), Activity::Kind::Computing, times_.own.computing,
                            batch.stamp.sequence);
      return gradientAlone ? thread_.replica().gradient(batch) : thread_.replica().step(batch);
    } catch (...) {
      finishBegun(run, listeners);  // if the step before has failed, this throws its exception instead
      throw;
    }
  }();
  times_.own.computing -= waitedInStep_;
  times_.own.waitingForWorkers += waitedInStep_;
  finishBegun(run, listeners);
  begun_ = Step{ticket, batch.stamp, batch.examples()};
  if (gradientAlone || ticket.known() || !listeners.listeners.empty())
    namingValues(batch, [&] { finishStep(run, listeners); });
}

void Worker::stampUpdate(BatchStamp& stamp) {
  if (updates_ != nullptr) stamp.update = static_cast<std::int64_t>(++updates_->count);
}

StepScore Worker::awaitScore(const Step& step, const FitRun& run) {
  const Phase computing(thread_.activity(), Activity::Kind::Computing, times_.own.computing,
                        step.stamp.sequence);
  const StepScore score = step.ticket.wait();
  requireFinite(score);
  require(std::isfinite(score.weight) && score.weight >= 0,
          "a step's weight must be finite and not negative, got {}", score.weight);
  if (run.shares.localWork() == LocalWork::Gradient) {
    requireFiniteGradient(thread_.replica().block(BlockKind::Gradients));
    requireFiniteStatistics(thread_.replica().blocks());
  }
  return score;
}

void Worker::finishStep(FitRun& run, WorkerListeners& listeners) {
  const Step step = *begun_;
  begun_.reset();
  const BatchStamp latest = std::exchange(current_, step.stamp);  // failures below are of this step
  const StepScore score = awaitScore(step, run);
  currentScore_ = score.score;
  currentExamples_ = step.examples;
  ++times_.own.batches;
  times_.own.examples += currentExamples_;
  if (!std::exchange(contribution_.late, false)) count(step.stamp, step.examples, score.weight);
  contribution_.scoreSum += score.score * score.weight;
  contribution_.plainScoreSum += score.score;
  if (run.shares.localWork() != LocalWork::Gradient) tell(listeners, currentScore_);
  current_ = latest;
}

void Worker::count(const BatchStamp& stamp, std::int64_t examples, double weight) {
  contribution_.weight += weight;
  contribution_.examples += examples;
  ++contribution_.batches;
  contribution_.iteration = stamp.iteration + 1;
}

void Worker::finishBegun(FitRun& run, WorkerListeners& listeners) {
  if (begun_) finishStep(run, listeners);
}

void Worker::lookAtReplica(const MergeShares& shares) {
  if (shares.localWork() == LocalWork::Gradient) return;
  Model& replica = thread_.replica();
  const bool unchecked = !replica.refusesNonFinite();
  if (!unchecked && !shares.looksAtReplicas()) return;
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

void Worker::update(FitRun& run, const Participant& me, WorkerListeners& listeners) {
  run.shares.afterReduction(me, run.rounds.decision());
  const RoundResult& round = run.rounds.result();
  const bool trained = contribution_.batches > 0;
  current_.epoch = round.epoch;  // changes something only if the worker trained nothing
  current_.iteration = round.iteration - 1;
  stampUpdate(current_);
  whole_ = false;
  double penalty = 0;
  try {
    const Phase computing(thread_.activity(), Activity::Kind::Computing, times_.own.computing,
                          current_.sequence);
    penalty = thread_.replica().update(current_);
  } catch (const UpdateRefused&) {
    whole_ = true;
    run.shares.refuseUpdate();
    throw;
  }
  whole_ = true;
  if (trained) {
    requireFinite({.score = currentScore_ + penalty});
    tell(listeners, currentScore_ + penalty);
  }
  run.shares.setUpdated(me.worker, penalty);
}

void Worker::tell(WorkerListeners& listeners, double score) {
  if (listeners.listeners.empty()) return;
  thread_.activity().set(Activity::Kind::WaitingForWorkers);  // another worker's listener may be running
  const Lock lock(listeners.mutex);
  thread_.activity().set(Activity::Kind::InListener, current_.sequence);
  const IterationEvent event{listeners.trainer, thread_.index(), current_, currentExamples_, score};
  for (const auto& listener : listeners.listeners) listener->onIteration(event);
}

}  // namespace muster
