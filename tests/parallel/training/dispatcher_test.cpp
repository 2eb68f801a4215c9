#include "muster/parallel/training/dispatcher.h"

#include <doctest/doctest.h>

#include <atomic>

#include "muster/parallel/strategies/averaging.h"
#include "muster/parallel/training/fit_run.h"
#include "muster/parallel/training/worker_batches.h"
#include "tests/parallel/no_exchange.h"
#include "tests/support/toy_data.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("batch b is dealt to worker b mod W with its stamp, then the end of the epoch to each worker") {
  for (const int nodes : {1, 2}) {
    CAPTURE(nodes);
    const NodePlace place{.node = nodes - 1, .nodes = nodes, .local = 2};  // the last node
    const std::int64_t workers = place.workers(), count = 2 * workers + 1;
    std::vector<std::unique_ptr<Batch>> batches;
    for (int i = 0; i < 6; ++i) batches.push_back(std::make_unique<Batch>());
    const auto strategy = Averaging{}.make();
    const StrategyTraits traits = strategy->traits(place.workers());
    const Schedule rate = 0.1;
    std::atomic<bool> stop{false};
    NoExchange exchange(/*participants=*/place.workers());
    FitRun run(place, batches, {.strategy = *strategy, .traits = traits, .stop = stop, .learningRate = rate},
               ledgerAt({}, /*iteration=*/7, /*epoch=*/3, place.workers()), &exchange);
    std::vector<ToyBatch> all{{{1, 1}}};  // two examples, then one each
    while (std::ssize(all) < count) all.push_back({{static_cast<float>(all.size() + 1)}});
    ToyIterator data(all);
    Activity reading, training;
    dispatch(run, data, /*epochs=*/1, nullptr, reading);
    CHECK(data.resets == std::vector<std::int64_t>{3});
    CHECK_FALSE(run.failure);
    for (const int local : {0, 1}) {
      TimeSheet times;
      WorkerBatches own;
      own.begin(run, local, training, times);
      for (std::int64_t b = place.worker(local); b < count; b += workers) {
        CAPTURE(b);
        const auto batch = own.next();
        REQUIRE((batch && *batch));
        CHECK((*batch)->features.front().value.data<float>()[0] == static_cast<float>(b + 1));
        CHECK((*batch)->stamp.sequence == b);
        CHECK((*batch)->stamp.epoch == 3);
        CHECK((*batch)->stamp.iteration == 7 + b / workers);
        CHECK((*batch)->stamp.firstExample == (b == 0 ? 0 : b + 1));
        CHECK(own.done(*batch));
      }
      CHECK(own.next() == std::optional<Batch*>(nullptr));
      CHECK(own.reading() == nullptr);
      own.giveBack();
    }
    for (int i = 0; i < 6; ++i) CHECK(run.queues.free().tryPop());
  }
}
