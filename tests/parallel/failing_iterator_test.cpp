#include "tests/support/failure.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

TEST_CASE("an iterator that throws in next() or reset() ends fit() with its exception") {
  for (const bool inReset : {false, true})
    for (const std::int64_t at :
         {0, 3, 8})  // 8: instead of reporting the end; of reset(): the second epoch's
      for (const bool trainedBefore : {false, true}) {
        CAPTURE(inReset);
        CAPTURE(at);
        CAPTURE(trainedBefore);
        ToyModel model;
        // One worker on {2}: p = 2 (1 - 0.5^iteration), wherever training stops.
        auto data = ToyIterator::ofValues(std::vector<float>(8, 2.0f));
        auto wrapper = toyWrapper(model, 1).build();
        if (trainedBefore) wrapper.fit(data);
        const std::int64_t begun = trainedBefore ? 1 : 0, reset = begun + (at > 0 ? 1 : 0);
        data.onReset = [&](std::int64_t epoch) {
          if (inReset && epoch == reset) boom();
        };
        data.onNext = [&](std::int64_t, std::int64_t batch) {
          if (!inReset && batch == at) boom();
        };
        const auto failure = failureOf(wrapper, data, 2);
        CHECK(failure.text ==
              (inReset ? fmt::format("the data iterator failed in reset to epoch {}: boom", reset + 1)
                       : fmt::format("the data iterator failed at batch {} of epoch {}: boom", at + 1,
                                     begun + 1)));
        CHECK(failure.worker == -1);
        CHECK(failure.cause == "boom");
        if (!inReset) CHECK(model.epoch() == begun);  // the reader is ahead
        CHECK(model.parameters()[0] ==
              doctest::Approx(2 * (1 - std::pow(0.5, model.iteration()))).epsilon(1e-6));
        data.onReset = {};
        checkTrainsAgain(wrapper, model);
      }
}

TEST_CASE("a batch without examples is refused") {
  for (const std::size_t at : {0, 1, 3}) {
    std::vector<ToyBatch> batches(4, ToyBatch{{1}});
    batches[at].values.clear();
    ToyIterator data(batches);
    ToyModel model;
    auto wrapper = toyWrapper(model, 2).build();
    const auto failure = failureOf(wrapper, data);
    CHECK(failure.text ==
          fmt::format("the data iterator failed at batch {} of epoch 1: the batch has no examples", at + 1));
    checkTrainsAgain(wrapper, model);
  }
}

TEST_CASE("after a failure fit() ends when the iterator's blocking call returns") {
  ToyModel model;
  Gate gate;
  std::atomic<bool> opened{false};
  auto data = ToyIterator::ofValues({1, 1, 1, 1});
  model.control().onStep = [&](const Batch& batch) {
    if (batch.stamp.sequence != 1) return;
    gate.awaitVisitor();
    boom();
  };
  data.onNext = [&](std::int64_t, std::int64_t batch) {
    if (batch == 2) gate.pass();
  };
  auto wrapper = toyWrapper(model, 2, 3).build();
  std::jthread opening([&] {
    gate.awaitVisitor();
    std::this_thread::sleep_for(50ms);
    opened = true;
    gate.open();
  });
  CHECK(failureOf(wrapper, data).text == "worker 1 on cpu failed in batch 2 of epoch 1: boom");
  CHECK(opened);
  checkTrainsAgain(wrapper, model);
}
