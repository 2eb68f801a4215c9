#include "muster/parallel/training/dispatcher.h"

#include <doctest/doctest.h>

#include "muster/parallel/strategies/averaging.h"
#include "muster/parallel/training/worker_batches.h"
#include "tests/parallel/no_exchange.h"
#include "tests/support/toy_data.h"

using namespace muster;
using namespace muster::test;

namespace {

std::vector<std::unique_ptr<Batch>> emptyBatches(int count) {
  std::vector<std::unique_ptr<Batch>> batches;
  for (int i = 0; i < count; ++i) batches.push_back(std::make_unique<Batch>());
  return batches;
}

/// A run in which no worker trains.
struct Run {
  explicit Run(int batches, const NodePlace& at = {.local = 2})
      : place(at),
        circulating(emptyBatches(batches)),
        traits(strategy->traits(at.workers())),
        exchange(/*participants=*/at.workers()),
        run(place, circulating, {.strategy = *strategy, .traits = traits, .stop = stop, .learningRate = 0.1},
            ledgerAt({}, /*iteration=*/7, /*epoch=*/3, place.workers()), &exchange) {}
  WorkerBatches of(int local) { return WorkerBatches(run, local, training, times); }

  const NodePlace place;
  const std::vector<std::unique_ptr<Batch>> circulating;
  const std::unique_ptr<Strategy> strategy = Averaging{}.make();
  const StrategyTraits traits;
  std::atomic<bool> stop{false};
  NoExchange exchange;
  Activity reading, training;
  TimeSheet times;
  FitRun run;
};

}  // namespace

TEST_CASE("batch b is dealt to worker b mod W with its stamp, then the end of the epoch to each worker") {
  for (const int nodes : {1, 2})
    for (const int local : {1, 2, 3})
      for (std::int64_t count = 1; count <= 9; ++count) {
        INFO("nodes ", nodes, ", local ", local, ", count ", count);
        Run one(20, {.node = nodes - 1, .nodes = nodes, .local = local});  // the last node
        const std::int64_t workers = one.place.workers(), rounds = (count + workers - 1) / workers;
        std::vector<ToyBatch> all{{{1, 1}}};  // two examples, then one each
        while (std::ssize(all) < count) all.push_back({{static_cast<float>(all.size() + 1)}});
        ToyIterator data(all);
        dispatch(one.run, data, /*epochs=*/2, nullptr, one.reading);
        CHECK(data.resets == std::vector<std::int64_t>{3, 4});
        CHECK_FALSE(one.run.failure);
        for (int w = 0; w < local; ++w) {
          WorkerBatches own = one.of(w);
          own.begin();
          for (const std::int64_t epoch : {3, 4}) {
            for (std::int64_t b = one.place.worker(w); b < count; b += workers) {
              CAPTURE(b);
              const auto batch = own.next();
              REQUIRE((batch && *batch));
              CHECK((*batch)->features.front().value.data<float>()[0] == static_cast<float>(b + 1));
              CHECK((*batch)->stamp.sequence == b);
              CHECK((*batch)->stamp.epoch == epoch);
              CHECK((*batch)->stamp.iteration == 7 + (epoch - 3) * rounds + b / workers);
              CHECK((*batch)->stamp.firstExample == (b == 0 ? 0 : b + 1));
              CHECK(own.done(*batch));
            }
            CHECK(own.next() == std::optional<Batch*>(nullptr));
          }
          CHECK(own.reading() == nullptr);
          own.giveBack();
        }
        for (int i = 0; i < 20; ++i) CHECK(one.run.queues.free().tryPop());
      }
}

TEST_CASE("a worker returns trained batches in groups, and the rest on request") {
  Run one(18);
  BatchQueues& queues = one.run.queues;
  REQUIRE(queues.group() == 4);  // 18 / (2 * 2): both workers together keep fewer than half
  std::vector<Batch*> read;
  while (const auto batch = queues.free().tryPop()) read.push_back(*batch);
  REQUIRE(read.size() == 18);

  WorkerBatches trained = one.of(0);
  trained.begin();
  for (std::size_t i = 0; i < 3; ++i) CHECK(trained.done(read[i]));
  CHECK_FALSE(queues.free().tryPop().has_value());
  CHECK(trained.done(read[3]));
  for (std::size_t i = 0; i < 4; ++i) CHECK(queues.free().tryPop() == read[i]);
  CHECK(trained.done(read[4]));
  queues.of(0).push(nullptr);
  CHECK(trained.next() == std::optional<Batch*>(nullptr));
  CHECK_FALSE(queues.free().tryPop().has_value());
  queues.of(0).push(read[5]);
  trained.giveBack();  // also what it was dealt
  CHECK(queues.free().tryPop() == read[4]);
  CHECK(queues.free().tryPop() == read[5]);
  queues.close();
  for (std::size_t i = 6; i < 9; ++i) CHECK(trained.done(read[i]));
  CHECK_FALSE(trained.done(read[9]));
}
