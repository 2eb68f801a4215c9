
#include "muster/parallel/training/internals.h"
#include "tests/support/log_lines.h"
#include "tests/support/recording_listener.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("a merged listener is called after each merge, on the thread that called fit()") {
  // 5 batches, 2 workers, frequency 2: merges after rounds 2 and 3, that is after 4 and 5 batches.
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5});
  auto listener = mergedListener();
  auto wrapper = toyWrapper(model, 2, 2).listeners({listener}).build();
  model.setCounters(10, 4);
  wrapper.fit(data, 2);
  CHECK_FALSE(listener->overlapped());
  std::vector<std::string> calls;  // event, epoch, iteration, batches and examples; -1: the event has none
  for (const auto& call : listener->calls()) {
    CHECK(call.thread == std::this_thread::get_id());
    calls.push_back(
        fmt::format("{} {} {} {} {}", call.event, call.epoch, call.iteration, call.batch, call.examples));
  }
  CHECK(calls == std::vector<std::string>{"fitStart 4 -1 -1 -1", "epochStart 4 10 -1 0", "merge 4 12 4 4",
                                          "merge 4 13 5 1", "epochEnd 4 13 -1 5", "epochStart 5 13 -1 0",
                                          "merge 5 15 4 4", "merge 5 16 5 1", "epochEnd 5 16 -1 5",
                                          "fitEnd -1 -1 -1 -1"});
}

TEST_CASE("a worker listener is called for each step, on its worker's thread, one call at a time") {
  ToyModel model;
  ToyIterator data(randomBatches(1, 40, 3, 1, true));
  auto delays = std::make_shared<RandomDelays>(3, std::chrono::microseconds(200));
  auto listener = workerListener([&](const RecordedCall&, Trainer& trainer) {
    CHECK(trainer.workers() == 3);
    (*delays)();
  });
  toyWrapper(model, 3, 4).listeners({listener}).build().fit(data, 2);
  CHECK_FALSE(listener->overlapped());
  std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
  std::map<int, std::set<std::thread::id>> threads;
  std::string order;  // of the other events
  std::int64_t epoch = -1;
  for (const auto& call : listener->calls()) {
    if (call.event != "iteration") order += call.event + " ";
    if (call.event == "epochStart") ++epoch;
    if (call.event != "iteration") continue;
    CHECK(call.epoch == epoch);  // between the epoch's events
    CHECK(call.worker == call.batch % 3);
    ++seen[{call.epoch, call.batch}];
    threads[call.worker].insert(call.thread);
  }
  CHECK(order == "fitStart epochStart epochEnd epochStart epochEnd fitEnd ");
  CHECK(seen.size() == 80);
  for (const auto& [batch, times] : seen) CHECK(times == 1);
  CHECK(threads.size() == 3);
  for (const auto& [worker, ids] : threads) {
    CHECK(ids.size() == 1);
    CHECK_FALSE(ids.contains(std::this_thread::get_id()));
  }
}

TEST_CASE("model() in merged events is the merged model") {
  // Frequency 1, {2} and {6}: p = 1 and 3, merged 2. Then {2} and {8}: 2 and 5, merged 3.5.
  ToyModel model;
  auto data = ToyIterator::ofValues({2, 6, 2, 8});
  std::vector<std::string> seen;
  auto listener = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
    auto& toy = dynamic_cast<ToyModel&>(trainer.model());
    seen.push_back(
        fmt::format("{} {} at {}, {}", call.event, toy.parameters()[0], toy.iteration(), toy.epoch()));
  });
  toyWrapper(model, 2).listeners({listener}).build().fit(data);
  CHECK(seen == std::vector<std::string>{"fitStart 0 at 0, 0", "epochStart 0 at 0, 0", "merge 2 at 1, 0",
                                         "merge 3.5 at 2, 0", "epochEnd 3.5 at 2, 1", "fitEnd 3.5 at 2, 1"});
}

TEST_CASE("model() in other events is the whole model of the last merge at which a listener asked") {
  // No listener needs the first merge, so steps of the second round see the user's model as at the start.
  ToyModel model;
  auto data = ToyIterator::ofValues({2, 6, 2, 8, 4, 4});
  std::mutex mutex;
  std::vector<std::string> seen;
  auto asking = workerListener([&](const RecordedCall& call, Trainer& trainer) {
    if (call.event != "iteration") return;
    auto& toy = dynamic_cast<ToyModel&>(trainer.model());
    std::scoped_lock lock(mutex);
    seen.push_back(fmt::format("{} at {}", toy.parameters()[0], toy.iteration()));
  });
  auto askingLater = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
    if (call.iteration == 2) trainer.model();
  });
  toyWrapper(model, 2).listeners({asking, askingLater}).build().fit(data);
  CHECK(seen == std::vector<std::string>{"0 at 0", "0 at 0", "0 at 0", "0 at 0", "3.5 at 2", "3.5 at 2"});
}

TEST_CASE("workerTimes() at a merge covers the merged steps, and starts anew with each fit()") {
  ToyModel model;
  ToyIterator data({{{1, 1}}, {{1}}, {{1, 1, 1}}});
  std::vector<std::string> seen;
  auto listener = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
    std::string text = call.event;
    for (const auto& times : trainer.workerTimes())
      text += fmt::format(" {}:{}/{}", times.worker, times.batches, times.examples);
    seen.push_back(text);
  });
  auto wrapper = toyWrapper(model, 2).listeners({listener}).build();
  CHECK(wrapper.workerTimes().size() == 2);
  for (int call = 0; call < 2; ++call) {
    seen.clear();
    wrapper.fit(data);
    CHECK(seen == std::vector<std::string>{"fitStart 0:0/0 1:0/0", "epochStart 0:0/0 1:0/0",
                                           "merge 0:1/2 1:1/1", "merge 0:2/5 1:1/1", "epochEnd 0:2/5 1:1/1",
                                           "fitEnd 0:2/5 1:1/1"});
  }
  CHECK(wrapper.workerTimes()[0].device == Device::cpu());
}

TEST_CASE("workerTimes() distinguishes computing, waiting for data and waiting for workers") {
  // Worker 1 takes its second batch and computes only kLong after the stall watch has noticed the waiting
  // worker.
  using namespace std::chrono_literals;
  constexpr auto kLong = 100ms;
  LogLines log;
  ToyModel model;
  model.control().onStep = [&](const Batch& batch) {
    if (batch.stamp.sequence != 3) return;
    CHECK(log.lineWith({"worker 0 is waiting for other workers for "}).starts_with("warning: fit()"));
    std::this_thread::sleep_for(kLong);
  };
  auto data = ToyIterator::ofValues({1, 2, 3, 4});
  data.onNext = [&](std::int64_t, std::int64_t batch) {
    while (batch == 2 && model.control().steps().size() < 2) std::this_thread::sleep_for(1ms);
    if (batch != 3) return;
    CHECK(log.lineWith({"the reader is in the iterator (batch 4) for ", "worker 1 is waiting for data for "})
              .starts_with("warning: fit()"));
    std::this_thread::sleep_for(kLong);
  };
  auto wrapper = toyWrapper(model, 2, 2).internals({.stallPatience = 20ms}).build();
  const auto begin = std::chrono::steady_clock::now();
  wrapper.fit(data);
  const auto whole = std::chrono::steady_clock::now() - begin;
  const auto times = wrapper.workerTimes();
  CHECK(times[1].computing >= kLong);
  CHECK(times[1].waitingForData >= kLong);
  CHECK(times[0].waitingForWorkers >= kLong);
  for (const auto& t : times)  // times do not overlap
    CHECK(t.computing + t.waitingForData + t.waitingForWorkers + t.merging <= whole);
}

TEST_CASE("several listeners of both scopes each get every call once") {
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2, 3, 4});
  std::vector<std::shared_ptr<RecordingListener>> all = {mergedListener(), workerListener(), mergedListener(),
                                                         workerListener()};
  toyWrapper(model, 2).listeners({all[0], all[1], all[2], all[3]}).build().fit(data);
  for (const auto& listener : {all[0], all[2]})
    CHECK(listener->order() == "fitStart epochStart merge merge epochEnd fitEnd");
  for (const auto& listener : {all[1], all[3]})
    CHECK(listener->order() == "fitStart epochStart iteration iteration iteration iteration epochEnd fitEnd");
}

TEST_CASE("batchesPerEpoch is set if the iterator knows it") {
  struct Asking final : Listener {
    void onFitStart(const FitEvent& e) override {
      told = fmt::format("{} epochs of {}", e.epochs, e.batchesPerEpoch.value_or(-1));
    }
    std::string told;
  };
  ToyModel model;
  auto asking = std::make_shared<Asking>();
  auto wrapper = toyWrapper(model, 2).listeners({asking}).build();
  auto data = ToyIterator::ofValues({1, 2});
  wrapper.fit(data);
  CHECK(asking->told == "1 epochs of -1");
  data.knownExamples = 10;
  data.knownBatchSize = 4;
  wrapper.fit(data, 2);
  CHECK(asking->told == "2 epochs of 3");
}

TEST_CASE("a listener that calls fit() ends the training with an error that says so") {
  for (const auto scope : {ListenerScope::Merged, ListenerScope::Worker}) {
    ToyModel model;
    auto data = ToyIterator::ofValues({1, 2, 3, 4});
    auto more = ToyIterator::ofValues({1});
    ParallelWrapper* self = nullptr;
    auto listener = std::make_shared<RecordingListener>(scope, [&](const RecordedCall& call, Trainer&) {
      if (call.event == "merge" || call.event == "iteration") self->fit(more);
    });
    auto wrapper = toyWrapper(model, 2).listeners({listener}).build();
    self = &wrapper;
    const auto text = thrown<TrainingError>([&] { wrapper.fit(data); });
    CHECK(text.find("fit: it is already running") != std::string::npos);
    CHECK(more.resets.empty());
  }
}

TEST_CASE("reportScoreAfterAveraging logs each merge") {
  const LogLines log;
  ToyModel model;
  ToyIterator data({{{2, 4}}, {{8}}});
  toyWrapper(model, 2).reportScoreAfterAveraging(true).build().fit(data);
  const auto lines = log.all();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("iteration 1: score 14.000000 after averaging in "));
  CHECK(lines[0].ends_with(" ms"));
}
