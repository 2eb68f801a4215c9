// What `fault_grid_test` does not try: it has the places where user code fails, with the errors' texts.
#include "tests/support/failure.h"

#include "muster/parallel/training/internals.h"
#include "tests/support/log_lines.h"
#include "tests/support/recording_listener.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

TEST_CASE("a worker may throw a value that is no std::exception") {
  ToyModel model;
  model.control().onStep = [](const Batch&) { throw 42; };
  auto data = twosAndSixes();
  auto wrapper = toyWrapper(model, 1).build();
  const auto failure = failureOf(wrapper, data);
  CHECK(failure.text ==
        "worker 0 on cpu failed in batch 1 of epoch 1: an exception that is not a std::exception");
  checkTrainsAgain(wrapper, model);
}

TEST_CASE("if all workers fail at once, fit() throws one error") {
  for (int attempt = 0; attempt < 20; ++attempt) {
    ToyModel model;
    model.control().onStep = [](const Batch&) { boom(); };
    auto data = twosAndSixes();
    auto wrapper = toyWrapper(model, 4).build();
    const auto failure = failureOf(wrapper, data);
    CHECK(failure.text == fmt::format("worker {} on cpu failed in batch {} of epoch 1: boom", failure.worker,
                                      failure.worker + 1));
    CHECK(model.parameters()[0] == 0);
    checkTrainsAgain(wrapper, model);
  }
}

TEST_CASE("after a failure no worker starts another batch") {
  LogLines log;
  std::atomic<bool> failing{false};
  ToyModel model;
  Gate gate;
  model.control().onStep = [&](const Batch& batch) {
    if (batch.stamp.sequence == 0) gate.pass();
    if (batch.stamp.sequence != 1) return;
    CHECK(log.lineWith({"worker 1 is computing (batch 2) for "}).starts_with("warning: fit()"));
    log.forget();
    failing = true;
    boom();
  };
  auto data = ToyIterator::ofValues(std::vector<float>(20, 1.0f));
  auto wrapper = toyWrapper(model, 2, 5).internals({.stallPatience = 20ms}).build();
  std::jthread opening([&] {
    while (!failing) std::this_thread::sleep_for(1ms);
    // Once the log no longer mentions worker 1, its failure is known.
    CHECK(log.lineWith({"worker 0 is computing (batch 1) for "}, {"worker 1"}).starts_with("warning: fit()"));
    gate.open();
  });
  CHECK(failureOf(wrapper, data).worker == 1);
  CHECK(model.control().steps().size() == 2);
}

TEST_CASE("averageUpdaters(false): after a failure the workers' updaters start from the user's model") {
  // As in merging_test: after {4}, {8}, {4} p = 4.625, the user's v = -11/3 (workers have -1.5 and -8).
  ToyModel model({.training = halfNesterovs()});
  auto data = ToyIterator::ofValues({4, 8, 4});
  auto wrapper = toyWrapper(model, 2).averageUpdaters(false).build();
  wrapper.fit(data);
  model.control().onStep = [](const Batch& batch) {
    if (batch.stamp.sequence == 1) boom();
  };
  failureOf(wrapper, data);
  CHECK(model.parameters()[0] == 4.625f);
  CHECK(model.updaterState("velocity")[0] == doctest::Approx(-11.0 / 3).epsilon(1e-6));
  model.control().onStep = {};
  // {4}: g = 0.625, v = -11/6 + 0.625.
  auto more = ToyIterator::ofValues({4});
  wrapper.fit(more);
  const double v = -11.0 / 6 + 0.625;
  CHECK(model.updaterState("velocity")[0] == doctest::Approx(v).epsilon(1e-6));
  CHECK(model.parameters()[0] == doctest::Approx(4.625 - 0.5 * (0.625 + 0.5 * v)).epsilon(1e-6));
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

TEST_CASE("an iterator that fails ahead of the workers fails the training where they need its batch") {
  const auto trained = [](int epoch, std::int64_t failing, int workers, int prefetch, bool inReset) {
    ToyModel model;
    auto data = ToyIterator::ofValues(std::vector<float>(8, 1.0f));
    data.onNext = [&](std::int64_t e, std::int64_t batch) {
      if (!inReset && e == epoch && batch == failing) boom();
    };
    data.onReset = [&](std::int64_t e) {
      if (inReset && e == epoch) boom();
    };
    model.control().onStep = [](const Batch&) { std::this_thread::sleep_for(100us); };
    const auto listener = mergedListener();
    auto wrapper = toyWrapper(model, workers).prefetchBuffer(prefetch).listeners({listener}).build();
    const auto failure = failureOf(wrapper, data, 2);
    CHECK_CONTAINS(failure.text,
                   inReset ? "failed in reset to epoch 2: boom" : "the data iterator failed at batch");
    const auto said = fmt::format("{} epochs, {} merges", listener->calls("epochEnd").size(),
                                  listener->calls("merge").size());
    checkTrainsAgain(wrapper, model);
    return said;
  };
  for (const int prefetch : {0, 16})
    for (const int workers : {1, 2}) {
      INFO(workers, " workers, prefetch ", prefetch);
      const auto anEpoch = fmt::format("1 epochs, {} merges", 8 / workers);
      CHECK(trained(1, 0, workers, prefetch, false) == anEpoch);
      CHECK(trained(1, 0, workers, prefetch, true) == anEpoch);
      CHECK(trained(0, 5, workers, prefetch, false) == fmt::format("0 epochs, {} merges", 5 / workers));
    }
}

TEST_CASE(
    "a failure of the iterator beyond an early stop is no failure of the training, whichever is first") {
  for (const bool stopFirst : {false, true})
    for (const int prefetch : {0, 16}) {
      INFO("stop first: ", stopFirst, ", prefetch ", prefetch);
      ToyModel model;
      std::atomic<bool> stopped{false}, failed{false};
      auto data = ToyIterator::ofValues(std::vector<float>(8, 1.0f));
      data.onNext = [&](std::int64_t epoch, std::int64_t) {
        if (epoch == 0) return;
        while (stopFirst && !stopped) std::this_thread::sleep_for(1ms);
        failed = true;
        boom();
      };
      const auto listener = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
        if (call.event != "epochEnd") return;
        while (!stopFirst && !failed) std::this_thread::sleep_for(1ms);
        trainer.stopFit();
        stopped = true;
      });
      auto wrapper = toyWrapper(model, 2, 3).prefetchBuffer(prefetch).listeners({listener}).build();
      CHECK_NOTHROW(wrapper.fit(data, 3));
      CHECK(model.epoch() == 1);
      CHECK(model.iteration() == 4);
      checkTrainsAgain(wrapper, model);
    }
}

TEST_CASE("replicas that are not copies of the model are refused") {
  const auto refusalOf = [](auto change) {
    ToyModel model;
    change(model.control());
    auto data = twosAndSixes();
    auto wrapper = toyWrapper(model, 2).build();
    const auto failure = failureOf(wrapper, data);
    CHECK(model.control().steps().empty());
    model.control().replicateNothing = model.control().shareMemory = false;
    model.control().replicaSize = 0;
    checkTrainsAgain(wrapper, model);
    return failure.text;
  };
  CHECK(refusalOf([](ToyControl& c) { c.replicateNothing = true; }) ==
        "worker 0 on cpu could not be made: the model's replicate() returned nothing");
  CHECK(refusalOf([](ToyControl& c) { c.replicaSize = 40; }) ==
        "worker 0 on cpu could not be made: its block parameters, float32 [48] on cpu, differs from the "
        "model's parameters, float32 [16] on cpu");
  // Otherwise all workers would train the same array without an error.
  CHECK(refusalOf([](ToyControl& c) { c.shareMemory = true; }) ==
        "worker 0 on cpu could not be made: its block parameters shares memory with the model's; "
        "replicate() must "
        "make a copy");
}
