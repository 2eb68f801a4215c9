#include "muster/parallel/runtime/stall_watch.h"

#include "muster/core/base/error.h"
#include "muster/parallel/training/internals.h"
#include "tests/support/log_lines.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

const detail::Internals kImpatient{.stallPatience = 60ms};

constexpr std::string_view kFit = "warning: fit() makes no progress: ";

}  // namespace

TEST_CASE("a call of the user's that does not return is named, with what the others wait for") {
  enum class At { Next, Reset, Step, MergedListener, WorkerListener, Replicate };
  struct Row {
    At at;
    std::int64_t batch, frequency;
    std::array<std::string_view, 3> parts;
  };
  for (const Row& row :
       {Row{At::Next,
            2,
            2,
            {"the reader is in the iterator (batch 3) for ", "worker 0 is waiting for data for ",
             "worker 1 is waiting for data for "}},
        Row{At::Reset, 0, 1, {"the caller is in the iterator for "}},
        Row{At::Step,
            3,
            2,
            {"worker 1 is computing (batch 4) for ", "worker 0 is waiting for other workers for ",
             "the reader is waiting for a free batch for "}},
        Row{At::MergedListener, 0, 1, {"the caller is in a listener for "}},
        Row{At::WorkerListener,
            1,
            2,
            {"worker 0 is waiting for other workers for ", "worker 1 is in a listener (batch 2) for "}},
        Row{At::Replicate, 0, 1, {"worker 0 is making or filling its replica for "}}}) {
    CAPTURE(static_cast<int>(row.at));
    LogLines log;
    ToyModel model;
    Gate gate;
    const auto passAt = [&](At at, std::int64_t batch) {
      if (row.at == at && row.batch == batch) gate.pass();
    };
    auto data = ToyIterator::ofValues({1, 2, 3, 4, 5, 6, 7, 8});
    data.onReset = [&](std::int64_t) { passAt(At::Reset, 0); };
    data.onNext = [&](std::int64_t, std::int64_t batch) { passAt(At::Next, batch); };
    model.control().onStep = [&](const Batch& batch) { passAt(At::Step, batch.stamp.sequence); };
    model.control().onReplicate = [&](int) { passAt(At::Replicate, 0); };
    const auto merged = mergedListener([&](const RecordedCall& call, Trainer&) {
      if (call.event == "merge") passAt(At::MergedListener, 0);
    });
    const auto ofWorkers = workerListener([&](const RecordedCall& call, Trainer&) {
      if (call.event == "iteration") passAt(At::WorkerListener, call.batch);
    });
    auto wrapper = toyWrapper(model, 2, row.frequency)
                       .internals(kImpatient)
                       .prefetchBuffer(1)
                       .listeners({merged, ofWorkers})
                       .build();
    std::jthread training([&] { wrapper.fit(data); });
    CHECK(log.lineWith({row.parts[0], row.parts[1], row.parts[2]}).starts_with(kFit));
    gate.open();
  }
}

TEST_CASE("an evaluation that stalls is named, too") {
  LogLines log;
  ToyModel model;
  Gate gate;
  auto data = ToyIterator::ofValues({1, 2, 3});  // no labels: the evaluation fails
  data.onNext = [&](std::int64_t, std::int64_t batch) {
    if (batch == 0) gate.pass();
  };
  auto wrapper = toyWrapper(model, 2).internals(kImpatient).build();
  std::jthread evaluating([&] { CHECK_THROWS_AS(wrapper.evaluate(data), TrainingError); });
  CHECK(log.lineWith({"the caller is in the iterator (batch 1) for "})
            .starts_with("warning: evaluate() makes no progress: "));
  gate.open();
}

TEST_CASE("a thread that waits for one that makes progress is no stall") {
  using Clock = std::chrono::steady_clock;
  LogLines log;
  // By the activities' clock, each step takes three quarters of the patience.
  std::atomic<Clock::duration> time{Clock::duration(0)};
  std::atomic<int> looks{0};  // how often the watch reads that clock
  const auto now = [&, caller = std::this_thread::get_id()] {
    const Clock::time_point read(time.load());
    if (std::this_thread::get_id() != caller) ++looks;
    return read;
  };
  Activity waiting(now), working(now), idle(now);
  waiting.set(Activity::Kind::WaitingForWorkers);
  working.set(Activity::Kind::Computing, 0);
  StallWatch watch({{"one", &waiting}, {"another", &working}, {"a third", &idle}}, 20ms);
  const StallWatch::Scope scope(watch, "fit()");
  for (int step = 1; step <= 12; ++step) {
    time = step * Clock::duration(15ms);
    for (const int before = looks; looks < before + 2;) std::this_thread::sleep_for(1ms);
    working.set(Activity::Kind::Computing, step);
  }
  CHECK(log.all().empty());
  time = 12 * Clock::duration(15ms) + 20ms;
  CHECK(
      log.lineWith({"one is waiting for other workers for 0.2 s; another is computing (batch 13) for 0.02 s"})
          .starts_with(kFit));
}

TEST_CASE("a wrapper between fit() calls is not watched") {
  LogLines log;
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2, 3});
  auto wrapper = toyWrapper(model, 2).internals(kImpatient).build();
  wrapper.fit(data);
  const auto reports = log.all().size();  // none, unless a busy machine delayed a thread
  std::this_thread::sleep_for(5 * kImpatient.stallPatience);
  CHECK(log.all().size() <= reports + 1);  // one report may have been under way
}

TEST_CASE("a lasting stall is reported again, once in each interval") {
  LogLines log;
  Activity stuck;
  const auto begin = std::chrono::steady_clock::now();
  stuck.set(Activity::Kind::Computing, 7);
  StallWatch watch({{"a worker", &stuck}}, 40ms);
  {
    const StallWatch::Scope scope(watch, "fit()");
    while (log.all().size() < 3) std::this_thread::sleep_for(1ms);
  }
  const auto reports = log.all().size();
  CHECK(std::chrono::steady_clock::now() - begin >= reports * 40ms);
  std::this_thread::sleep_for(200ms);
  CHECK(log.all().size() <= reports + 1);  // the watch has ended; one report may have been under way
}

TEST_CASE("if many threads stall, one of each kind is named, with the number of others") {
  LogLines log;
  Activity merging, waiting[12];
  merging.set(Activity::Kind::Merging);
  std::vector<StallWatch::Subject> subjects = {{"worker 0", &merging}};
  for (auto& activity : waiting) {
    activity.set(Activity::Kind::WaitingForWorkers);
    subjects.push_back({fmt::format("worker {}", subjects.size()), &activity});
    std::this_thread::sleep_for(1ms);  // worker 1 waits longest
  }
  StallWatch watch(subjects, 40ms);
  const StallWatch::Scope scope(watch, "fit()");
  const auto line = log.lineWith({"worker 0 is merging for ", "worker 1 is waiting for other workers for "});
  CHECK(line.find(", as 11 others are") != std::string::npos);
  CHECK(line.find("worker 2") == std::string::npos);
}

TEST_CASE("a stall in a real training is reported after ten seconds") {
  CHECK(detail::Internals{}.stallPatience == 10s);
}
