#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

TEST_CASE("stopFit() from a merged listener stops at that very merge") {
  for (const int workers : {1, 2, 3})
    for (const std::int64_t prefetch : {0, 16}) {
      CAPTURE(workers);
      ToyModel model;
      ToyIterator data(randomBatches(2, 40, 2));
      auto listener = mergedListener();
      toyWrapper(model, workers, 2)
          .prefetchBuffer(prefetch)
          .listeners({listener, stopAt(6)})
          .build()
          .fit(data, 5);
      CHECK(model.control().steps().size() == static_cast<std::size_t>(6 * workers));
      CHECK(model.iteration() == 6);
      CHECK(model.epoch() == 0);
      CHECK(listener->order() == "fitStart epochStart merge merge merge fitEnd");
    }
}

TEST_CASE(
    "stopFit() at the end of an epoch leaves that epoch finished; in the first event nothing is trained") {
  for (const std::string event : {"epochEnd", "fitStart"}) {
    ToyModel model;
    auto data = ToyIterator::ofValues({1, 2, 3, 4, 5});
    auto listener = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
      if (call.event == event && call.epoch == (event == "epochEnd" ? 1 : 0)) trainer.stopFit();
    });
    auto wrapper = toyWrapper(model, 2, 2).listeners({listener}).build();
    const auto before = model.allBits();
    wrapper.fit(data, 10);
    const std::int64_t epochs = event == "epochEnd" ? 2 : 0;
    CHECK(model.epoch() == epochs);
    CHECK(model.iteration() == 3 * epochs);
    CHECK(std::ssize(model.control().steps()) == 5 * epochs);
    CHECK((model.allBits() == before) == (epochs == 0));
  }
}

TEST_CASE("stopFit() from a worker's listener merges what was trained") {
  // Worker 0 does {4} and {6}: p = 2, 4. Its listener stops at the second, while worker 1 is still in its
  // first step, {8}: p = 4. Merged by 2 and 1 examples: (2 * 4 + 4) / 3 = 4. Iteration 2: worker 0 has done
  // two.
  ToyModel model;
  Gate gate;
  model.control().onStep = [&](const Batch& batch) {
    if (batch.stamp.sequence == 1) gate.pass();
  };
  auto listener = workerListener([&](const RecordedCall& call, Trainer& trainer) {
    if (call.event != "iteration" || call.batch != 2) return;
    gate.awaitVisitor();
    trainer.stopFit();
    gate.open();
  });
  auto data = ToyIterator::ofValues({4, 8, 6, 100, 100, 100, 100, 100});
  toyWrapper(model, 2, 4).listeners({listener}).build().fit(data);
  CHECK(model.control().steps().size() == 3);
  CHECK(model.parameters()[0] == 4);
  CHECK(model.iteration() == 2);
  CHECK(model.epoch() == 0);
}

TEST_CASE("stopFit() before fit() has no effect") {
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2, 3});
  auto wrapper = toyWrapper(model, 2).build();
  wrapper.stopFit();
  wrapper.fit(data);
  wrapper.stopFit();
  wrapper.fit(data);
  CHECK(model.epoch() == 2);
  CHECK(model.control().steps().size() == 6);
}

TEST_CASE("stopFit() ends fit() when the iterator's call returns, also while a worker waits for data") {
  struct Row {
    std::int64_t prefetch, frequency, blocked;  // the batch that the iterator gives only after the stop
    float parameter;
  };
  for (const Row& row : {Row{16, 1, 2, 2}, Row{0, 3, 1, 1}, Row{4, 3, 1, 1}}) {
    ToyModel model;
    Gate gate;
    auto data = ToyIterator::ofValues({2, 6, 100, 100});
    data.onNext = [&](std::int64_t, std::int64_t batch) {
      if (batch == row.blocked) gate.pass();
    };
    auto wrapper = toyWrapper(model, 2, row.frequency).prefetchBuffer(row.prefetch).build();
    {
      std::jthread training([&] { wrapper.fit(data, 3); });
      gate.awaitVisitor();
      while (std::ssize(model.control().steps()) < row.blocked) std::this_thread::sleep_for(1ms);
      wrapper.stopFit();
      std::this_thread::sleep_for(10ms);
      gate.open();
    }
    CHECK(std::ssize(model.control().steps()) == row.blocked);
    CHECK(model.parameters()[0] == row.parameter);
    CHECK(model.iteration() == 1);
    CHECK(model.epoch() == 0);
  }
}

TEST_CASE("stopFit() works from another thread at random moments, a hundred times") {
  // Every batch moves p halfway to 1. After a stop, p = 1 - 0.5^iteration only if the rounds were whole, so
  // check only what always holds.
  std::mt19937 random(17);
  for (int attempt = 0; attempt < 100; ++attempt) {
    CAPTURE(attempt);
    const int workers = 1 + attempt % 4;
    ToyModel model;
    auto delays = std::make_shared<RandomDelays>(random(), 100us);
    ToyIterator data(randomBatches(random(), 5 + attempt % 7, 3, 1, true));
    data.onNext = [delays](std::int64_t, std::int64_t) { (*delays)(); };
    model.control().onStep = [delays](const Batch&) { (*delays)(); };
    auto listener = mergedListener();
    auto wrapper =
        toyWrapper(model, workers, 1 + attempt % 3).prefetchBuffer(attempt % 5).listeners({listener}).build();
    std::atomic<bool> over{false};
    {
      const auto wait = std::chrono::microseconds(random() % 3000);
      std::jthread stopping([&wrapper, &over, wait] {
        std::this_thread::sleep_for(wait);
        // A stop before fit() begins has no effect, so request it until it works.
        while (!over) {
          wrapper.stopFit();
          std::this_thread::sleep_for(200us);
        }
      });
      wrapper.fit(data, 1000000);
      over = true;
    }
    const auto steps = model.control().steps();
    CHECK(std::isfinite(model.parameters()[0]));
    // Counters match the trained steps: the last step of the last epoch was in the last iteration.
    CHECK(model.iteration() == (steps.empty() ? 0 : [&] {
            std::int64_t last = 0;
            for (const auto& step : steps) last = std::max(last, step.stamp.iteration + 1);
            return last;
          }()));
    CHECK(static_cast<std::int64_t>(listener->calls("epochEnd").size()) == model.epoch());
    const auto merges = listener->calls("merge");
    CHECK(model.iteration() == (merges.empty() ? 0 : merges.back().iteration));
    std::int64_t examples = 0, trained = 0;
    for (const auto& merge : merges) examples += merge.examples;
    for (const auto& times : wrapper.workerTimes()) trained += times.examples;
    CHECK(examples == trained);  // every trained example was merged
    // Training continues.
    auto more = ToyIterator::ofValues({1, 1});
    const auto epoch = model.epoch();
    wrapper.fit(more);
    CHECK(model.epoch() == epoch + 1);
  }
}
