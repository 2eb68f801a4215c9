#include "muster/parallel/training/worker.h"

#include "tests/parallel/training/small_fit.h"
#include "tests/support/failure.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// One worker, whose queue the test fills: one epoch of two batches.
struct Queued {
  Queued() {
    fit.load();
    run.decisions.prepare();
    run.rounds.begin(1);
    auto data = ToyIterator({{{2, 4}}, {{7}}});
    data.reset(0);
    for (std::int64_t b = 0; b < 2; ++b) {
      Batch* const batch = *run.queues.free().tryPop();
      data.next(*batch);
      batch->stamp = {.sequence = b, .iteration = b};
      run.queues.of(0).push(batch);
    }
    run.queues.of(0).push(nullptr);
  }
  Worker& worker() { return *fit.replicas.workers()[0]; }
  /// Trains, and takes the coordinator's turn.
  void train() {
    Tasks tasks;
    worker().train(tasks, run, fit.replicas.exchange(), listeners);
    tasks.start();
    while (run.rounds.await()) {
      const bool over = run.decisions.isOver();
      run.rounds.resume();
      if (over) break;
    }
    tasks.wait();
    run.decisions.close();
  }

  SmallFit fit;
  FitRun run{fit.replicas.place(),
             fit.batches,
             {.strategy = fit.replicas.strategy(),
              .traits = fit.replicas.traits(),
              .stop = fit.stop,
              .learningRate = 0.5,
              .undo = fit.replicas.undo()},
             ledgerAt({}, 0, 0, 1),
             &fit.replicas.exchange()};
  WorkerListeners listeners{fit.trainer, {}, {}};
};

}  // namespace

TEST_CASE("a worker trains its queue's batches, merges after each and returns them") {
  // From 0 halfway to 3: 1.5; halfway to 7: 4.25.
  Queued queued;
  queued.train();
  CHECK(queued.fit.merged() == 4.25f);
  CHECK(queued.run.decisions.ledger().merges == 2);
  CHECK(queued.worker().whole());
  const WorkerTimes times = queued.worker().times();
  CHECK(times.worker == 0);
  CHECK(times.batches == 2);
  CHECK(times.examples == 3);
  for (std::size_t i = 0; i < queued.fit.batches.size(); ++i) CHECK(queued.run.queues.free().tryPop());
  queued.worker().resetTimes();
  CHECK(queued.worker().times().batches == 0);
}

TEST_CASE("a replica that is ahead of its merge is not whole until it gets a state") {
  Worker worker(3, 1, {}, 1);
  CHECK(worker.thread().name() == "worker 3 on cpu");
  CHECK(worker.whole());
  worker.setWhole(false);
  CHECK_FALSE(worker.whole());
  worker.setWhole(true);
  CHECK(worker.whole());
}
