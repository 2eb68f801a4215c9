#include "muster/parallel/runtime/stall_watch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/parallel/detail/internals.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

/// Collects what is logged while it lives.
class Log {
 public:
  Log() {
    sinkBefore_ = setLogSink([this](LogLevel level, std::string_view line) {
      std::scoped_lock lock(mutex_);
      lines_.push_back((level == LogLevel::Warning ? "warning: " : "") + std::string(line));
    });
  }
  ~Log() { setLogSink(sinkBefore_); }
  std::vector<std::string> lines() const {
    std::scoped_lock lock(mutex_);
    return lines_;
  }
  /// Waits for a line that contains all of `parts`. On a busy machine the first report may come before all
  /// threads have got where they stay.
  std::string lineWith(std::initializer_list<std::string_view> parts) const {
    std::string last = "nothing was logged";
    for (int i = 0; i < 5000; ++i) {
      for (const auto& line : lines()) {
        const auto has = [&](std::string_view part) { return line.find(part) != std::string::npos; };
        if (std::ranges::all_of(parts, has)) return line;
        last = line;
      }
      std::this_thread::sleep_for(1ms);
    }
    return "no line has it all; the last one: " + last;
  }

 private:
  LogSink sinkBefore_;
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by mutex_
};

const detail::Internals kImpatient{.stallPatience = 60ms};

constexpr std::string_view kFit = "warning: fit() does not move on: ";

}  // namespace

TEST_CASE("an iterator that does not come back is named") {
  Log log;
  ToyModel model;
  Gate gate;
  auto data = ToyIterator::ofValues({1, 2, 3});
  data.onNext = [&](std::int64_t, std::int64_t batch) {
    if (batch == 2) gate.pass();
  };
  auto wrapper = toyWrapper(model, 2, 2).internals(kImpatient).build();
  std::jthread training([&] { wrapper.fit(data); });
  CHECK(log.lineWith({"the reader is in the iterator (batch 3) for ", "worker 0 is waiting for data for ",
                      "worker 1 is waiting for data for "})
            .starts_with(kFit));
  gate.open();
}

TEST_CASE("an evaluation is watched, too") {
  Log log;
  ToyModel model;
  Gate gate;
  auto data = ToyIterator::ofValues({1, 2, 3});  // no labels: it fails in the end
  data.onNext = [&](std::int64_t, std::int64_t batch) {
    if (batch == 0) gate.pass();
  };
  auto wrapper = toyWrapper(model, 2).internals(kImpatient).build();
  std::jthread evaluating([&] { CHECK_THROWS_AS(wrapper.evaluate(data), TrainingError); });
  CHECK(log.lineWith({"the caller is in the iterator (batch 1) for "})
            .starts_with("warning: evaluate() does not move on: "));
  gate.open();
}

TEST_CASE("the first batch is watched, too") {
  Log log;
  ToyModel model;
  Gate gate;
  auto data = ToyIterator::ofValues({1, 2, 3});
  data.onReset = [&](std::int64_t) { gate.pass(); };
  auto wrapper = toyWrapper(model, 2).internals(kImpatient).build();
  std::jthread training([&] { wrapper.fit(data); });
  CHECK(log.lineWith({"the caller is in the iterator for "}).starts_with(kFit));
  gate.open();
}

TEST_CASE("a step that does not come back is named") {
  Log log;
  ToyModel model;
  Gate gate;
  model.control().onStep = [&](const Batch& batch) {
    if (batch.stamp.sequence == 1) gate.pass();
  };
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5, 6, 7, 8});
  auto wrapper = toyWrapper(model, 2).internals(kImpatient).prefetchBuffer(1).build();
  std::jthread training([&] { wrapper.fit(data); });
  CHECK(log.lineWith({"worker 1 is computing (batch 2) for ", "worker 0 is waiting for other workers for ",
                      "the reader is waiting for a free batch for "})
            .starts_with(kFit));
  gate.open();
}

TEST_CASE("listeners of both scopes that do not come back are named") {
  for (const auto scope : {ListenerScope::Merged, ListenerScope::Worker}) {
    Log log;
    ToyModel model;
    Gate gate;
    auto data = ToyIterator::ofValues({1, 2, 3, 4});
    auto listener = std::make_shared<RecordingListener>(scope, [&](const RecordedCall& call, Trainer&) {
      if (call.event == "merge" || (call.event == "iteration" && call.batch == 1)) gate.pass();
    });
    auto wrapper = toyWrapper(model, 2).internals(kImpatient).listeners({listener}).build();
    std::jthread training([&] { wrapper.fit(data); });
    CHECK(log.lineWith({scope == ListenerScope::Merged ? "the caller is in a listener for "
                                                       : "worker 1 is in a listener (batch 2) for "})
              .starts_with(kFit));
    gate.open();
  }
}

TEST_CASE("a worker that waits for another's listener is not blamed for it") {
  Log log;
  ToyModel model;
  Gate gate;
  auto data = ToyIterator::ofValues({1, 2, 3, 4});
  auto listener =
      std::make_shared<RecordingListener>(ListenerScope::Worker, [&](const RecordedCall& call, Trainer&) {
        if (call.event == "iteration" && call.batch == 1) gate.pass();
      });
  auto wrapper = toyWrapper(model, 2, 2).internals(kImpatient).listeners({listener}).build();
  std::jthread training([&] { wrapper.fit(data); });
  CHECK(
      log.lineWith({"worker 0 is waiting for other workers for ", "worker 1 is in a listener (batch 2) for "})
          .starts_with(kFit));
  gate.open();
}

TEST_CASE("a replica that is not made in time is named") {
  Log log;
  ToyModel model;
  Gate gate;
  model.control().onReplicate = [&](int) { gate.pass(); };
  auto data = ToyIterator::ofValues({1});
  auto wrapper = toyWrapper(model, 1).internals(kImpatient).build();
  std::jthread training([&] { wrapper.fit(data); });
  CHECK(log.lineWith({"worker 0 is making or filling its replica for "}).starts_with(kFit));
  gate.open();
}

TEST_CASE("a long training that moves on is no stall, nor is a wrapper at rest") {
  constexpr auto kPatience = 300ms;  // a busy machine may let a thread wait for some of it
  Log log;
  ToyModel model;
  // 60 steps of 15 ms on one of two workers, with no listener to meet before the end: three patiences.
  model.control().onStep = [](const Batch& batch) {
    if (batch.stamp.sequence % 2 == 1) std::this_thread::sleep_for(15ms);
  };
  auto data = ToyIterator::ofValues(std::vector<float>(120, 1.0f));
  auto wrapper =
      toyWrapper(model, 2, 1000).internals({.stallPatience = kPatience}).prefetchBuffer(1000).build();
  wrapper.fit(data);
  std::this_thread::sleep_for(2 * kPatience);
  CHECK(log.lines().empty());
}

TEST_CASE("a stall that lasts is reported again, once in each patience") {
  Log log;
  Activity stuck;
  const auto begin = std::chrono::steady_clock::now();
  stuck.set(Activity::Kind::Computing, 7);
  StallWatch watch({{"a worker", &stuck}}, 40ms);
  {
    const StallWatch::Shift shift(watch, "fit()");
    for (int i = 0; i < 5000 && log.lines().size() < 3; ++i) std::this_thread::sleep_for(1ms);
  }
  const auto reports = log.lines().size();
  CHECK(reports >= 3);
  CHECK(std::chrono::steady_clock::now() - begin >= reports * 40ms);
  std::this_thread::sleep_for(100ms);
  CHECK(log.lines().size() == reports);  // the watch has ended
}

TEST_CASE("the patience of a real training is ten seconds") {
  CHECK(detail::Internals{}.stallPatience == 10s);
}
