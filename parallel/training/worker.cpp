#include "muster/parallel/training/worker.h"

#include <chrono>
#include <string_view>

#include "muster/parallel/nodes/node_transport.h"

namespace muster {

Worker::Worker(int index, int local, const Placement& placement, int threads)
    : local_(local), steps_(thread_, times_), thread_("worker", index, placement, threads) {
  resetTimes();
}

void Worker::resetTimes() {
  times_.own = {.worker = thread_.index(), .device = thread_.placement().device};
  times_.publish();
}

void Worker::train(Tasks& tasks, FitRun& run, Exchange& exchange, WorkerListeners& listeners) {
  thread_.addTo(tasks, Activity::Kind::WaitingForData, [this, &run, &exchange, &listeners] {
    const Participant me{thread_.index(), exchange, thread_.context(), times_, thread_.activity()};
    steps_.begin(run.shares, run.peers, exchange, listeners, run.decisions.start());
    WorkerBatches batches(run, local_, thread_.activity(), times_);
    try {
      batches.begin();
      obey(run, batches, me);
    } catch (const NodeFailure&) {
      run.fail(-1, std::current_exception(), [&] {
        return fmt::format("the training on {} nodes has failed {}", exchange.nodes(),
                           steps_.hadBatch() ? "after " + steps_.current().toString()
                                             : "before the first batch of " + thread_.name());
      });
    } catch (...) {
      run.fail(batches.reading() ? -1 : thread_.index(), std::current_exception(),
               [&] { return failure(batches.reading()); });
    }
    steps_.end();
    times_.publish();
  });
}

std::string Worker::failure(const BatchStamp* reading) const {
  if (reading) return fmt::format("the data iterator failed at {}", reading->toString());
  if (!steps_.hadBatch()) return fmt::format("{} failed before its first batch", thread_.name());
  const auto kind = thread_.activity().kind();
  const std::string_view where = kind == Activity::Kind::Computing    ? "in"
                                 : kind == Activity::Kind::InListener ? "in a listener after"
                                 : kind == Activity::Kind::InExchange ? "in a sum over the workers in"
                                                                      : "at the merge after";
  return fmt::format("{} failed {} {}", thread_.name(), where, steps_.current().toString());
}

void Worker::obey(FitRun& run, WorkerBatches& batches, const Participant& me) {
  Contribution& contribution = steps_.contribution();
  for (Order order = run.rounds.first(me.worker);; order = run.rounds.next(me, contribution)) {
    if (order.counters) thread_.replica().setCounters(order.counters->iteration, order.counters->epoch);
    switch (order.what) {
      case Order::Do::Train:
        if (order.merged) contribution = {.ended = contribution.ended && !order.epochOver};
        if (!runRound(run, batches, me, order.iterations)) return;
        if (contribution.batches == 0) break;
        steps_.lookAtReplica();
        run.shares.contribute(me, contribution.weight);
        break;
      case Order::Do::Merge:
        run.shares.merge(me, run.decisions.decision());
        if (contribution.late) steps_.finish();
        break;
      case Order::Do::Update:
        steps_.update(me, run.decisions.decision());
        break;
      case Order::Do::Visit:
        visit(*order.visit);
        break;
      case Order::Do::End:
        return;
    }
  }
}

/// Counts as waiting at first, as the rest of the listeners' time, which Rounds takes out.
void Worker::visit(const std::function<void(int)>& task) {
  const auto begun = std::chrono::steady_clock::now();
  task(local_);
  times_.own.waitingForWorkers += std::chrono::steady_clock::now() - begun;
}

bool Worker::runRound(FitRun& run, WorkerBatches& batches, const Participant& me, std::int64_t iterations) {
  Contribution& contribution = steps_.contribution();
  for (std::int64_t done = 0; done < iterations && !contribution.ended && !run.stopping(); ++done) {
    if (done > 0 && run.rounds.landingDue()) break;
    run.requireNodes();
    const auto batch = batches.next();
    if (!batch) return false;
    if (*batch == nullptr) {
      contribution.ended = true;
      run.peers.leave(local_);
      break;
    }
    // After a stop during the wait, the batch is not trained.
    if (!run.stopping())
      steps_.train(**batch);
    else
      contribution.untrained = (*batch)->stamp.sequence;
    if (!batches.done(*batch)) return false;
  }
  if (!contribution.ended && !run.stopping() && run.shares.mergesBeforeScores(me.exchange) &&
      steps_.countWithoutScore())
    return true;
  steps_.finish();  // only finished steps with finite scores are merged
  if (run.stopping()) {
    run.peers.leave(local_);  // other workers may have begun a step before the stop
    batches.giveBack();
  }
  return true;
}

}  // namespace muster
