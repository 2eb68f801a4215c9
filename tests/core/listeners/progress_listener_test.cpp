#include "muster/core/listeners/progress_listener.h"

#include "muster/core/base/log.h"
#include "tests/support/environment.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/terminal_screen.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

struct Fixture {
  test::EchoModel model;
  test::FakeTrainer trainer{model};
  test::TerminalScreen screen{76};
  std::string plain;
  std::chrono::steady_clock::time_point clock;

  ProgressOptions options(bool terminal) {
    return {.terminal = {.terminal = terminal,
                         .write =
                             [this, terminal](std::string_view text) {
                               if (terminal)
                                 screen.write(text);
                               else
                                 plain += text;
                             },
                         .columns = [] { return 76; },
                         .now = [this] { return clock; }}};
  }
  FitEvent fit(std::int64_t epochs = 2) {
    return {.trainer = trainer, .firstEpoch = 0, .epochs = epochs, .batchesPerEpoch = 100};
  }
  MergeEvent merge(std::int64_t batches, std::int64_t examples, double score) {
    return {.trainer = trainer, .batchesInEpoch = batches, .examples = examples, .score = score};
  }
};

const Progress kHalf{.epoch = 1,
                     .epochs = 3,
                     .batches = 50,
                     .batchesPerEpoch = 100,
                     .examples = 6400,
                     .elapsed = 4s,
                     .score = 0.12345};

}  // namespace

TEST_CASE("a narrow terminal gets a shorter bar, and loses the least important part first") {
  CHECK(progressBar(kHalf, 200) ==
        "epoch 1/3  50% [===================>                  ]  50/100  1600 samples/s  score 0.1235  0:04 "
        "left");
  CHECK(progressBar(kHalf, 80) ==
        "epoch 1/3  50% [=======>      ]  50/100  1600 samples/s  score 0.1235  0:04 left");
  CHECK(progressBar(kHalf, 66) == "epoch 1/3  50%  50/100  1600 samples/s  score 0.1235  0:04 left");
  CHECK(progressBar(kHalf, 60) == "epoch 1/3  50% [=====>    ]  50/100  score 0.1235  0:04 left");
  CHECK(progressBar(kHalf, 40) == "epoch 1/3  50%  score 0.1235  0:04 left");
  CHECK(progressBar(kHalf, 30) == "epoch 1/3  50%  score 0.1235");
  CHECK(progressBar(kHalf, 14) == "epoch 1/3  50%");
  CHECK(progressBar(kHalf, 5) == "epoch");
  CHECK(progressBar(kHalf, 0).empty());
  CHECK(progressBar(kHalf, -1).empty());
}

TEST_CASE("the bar is never wider than asked") {
  for (int columns = 0; columns < 150; ++columns)
    for (const std::int64_t batches : {0, 1, 99, 100, 101}) {
      Progress progress = kHalf;
      progress.batches = batches;
      CHECK(static_cast<int>(progressBar(progress, columns).size()) <= columns);
    }
}

TEST_CASE("the bar shows the start and the end of an epoch, and an epoch of unknown length") {
  Progress progress = kHalf;
  progress.batches = 100;
  CHECK(progressBar(progress, 59) == "epoch 1/3 100% [========]  100/100  score 0.1235  0:00 left");
  progress = {.epoch = 2, .epochs = 2, .batches = 0, .batchesPerEpoch = 100};
  CHECK(progressBar(progress, 40) == "epoch 2/2   0% [>               ]  0/100");
  progress = kHalf;
  progress.batchesPerEpoch.reset();
  CHECK(progressBar(progress, 100) == "epoch 1/3  50 batches  1600 samples/s  score 0.1235");
  CHECK(progressLine(progress) == "epoch 1/3: 50 batches, 1600 samples/s, score 0.1235");
}

TEST_CASE("without a terminal the progress is written as lines, with times in minutes and hours") {
  CHECK(progressLine(kHalf) ==
        "epoch 1/3: 50 % (50 of 100 batches), 1600 samples/s, score 0.1235, 0:04 left");
  CHECK(epochLine(kHalf) == "epoch 1/3: score 0.1235, 6400 examples in 4.0 s, 1600 samples/s");
  Progress progress = kHalf;
  for (const auto& [seconds, words] :
       {std::pair(0.04, "0.0 s"), {59.94, "59.9 s"}, {59.96, "1:00"}, {754.2, "12:35"}}) {
    progress.elapsed = std::chrono::duration<double>(seconds);
    CHECK(epochLine(progress).starts_with(
        fmt::format("epoch 1/3: score 0.1235, 6400 examples in {}, ", words)));
  }
  Progress slow = kHalf;
  slow.elapsed = 754s;
  CHECK(progressLine(slow).ends_with("12:34 left"));
  slow.elapsed = 3723s;
  CHECK(progressLine(slow).ends_with("1:02:03 left"));
}

TEST_CASE_FIXTURE(Fixture, "a terminal gets ten redraws a second, one line an epoch, and no bar at the end") {
  ProgressListener listener(options(true));
  listener.onFitStart(fit());
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    listener.onEpochStart({.trainer = trainer, .epoch = epoch});
    screen.writes = 0;
    for (int i = 1; i <= 100; ++i) {  // a second of merges, 10 ms apart
      clock += 10ms;
      listener.onMerge(merge(i, 64, 0.5));
    }
    CHECK(screen.writes == 10);
    CHECK(screen.lines.back() == "epoch " + std::to_string(epoch + 1) +
                                     "/2 100% [========]  100/100  6400 samples/s  score 0.5000  0:00 left");
    clock += 1s;
    listener.onEpochEnd({trainer, epoch, 100, 0.5, 6400});
    CHECK(screen.lines.back().empty());
  }
  clock += 1s;
  listener.onMerge(merge(1, 64, 0.5));  // a failure leaves a bar
  CHECK_FALSE(screen.lines.back().empty());
  listener.onFitEnd(trainer);
  CHECK(screen.lines ==
        std::vector<std::string>{"epoch 1/2: score 0.5000, 6400 examples in 2.0 s, 3200 samples/s",
                                 "epoch 2/2: score 0.5000, 6400 examples in 2.0 s, 3200 samples/s", ""});
  CHECK_FALSE(screen.wrapped);
}

TEST_CASE("a score that diverges has as many digits as any other score") {
  Progress progress = kHalf;
  for (const auto& [score, digits] : {std::pair(99999.99994, "99999.9999"),
                                      {1e5, "1.000e+05"},
                                      {-3.4e38, "-3.400e+38"},
                                      {test::kNan, "nan"}}) {
    progress.score = score;
    CHECK_CONTAINS(progressBar(progress, 66), fmt::format("  score {}  0:04 left", digits));
    CHECK(epochLine(progress) ==
          fmt::format("epoch 1/3: score {}, 6400 examples in 4.0 s, 1600 samples/s", digits));
  }
}

TEST_CASE_FIXTURE(Fixture, "log lines appear above the bar, and the previous sink is restored") {
  std::vector<std::string> logged;
  const LogSink before = setLogSink([&](LogLevel, std::string_view text) {
    logged.emplace_back(text);
    screen.write("log: " + std::string(text) + "\n");
  });
  {
    ProgressListener listener(options(true));
    listener.onFitStart(fit());
    listener.onEpochStart({trainer});
    clock += 1s;
    listener.onMerge(merge(50, 64, 0.5));
    const std::string bar = screen.lines.back();
    std::thread([] { logInfo("from a worker"); }).join();
    CHECK(screen.lines == std::vector<std::string>{"log: from a worker", bar});
    listener.onFitEnd(trainer);
    logInfo("after the fit");
    CHECK(screen.lines == std::vector<std::string>{"log: from a worker", "log: after the fit", ""});
    listener.onFitStart(fit());
  }
  logInfo("after a listener that never saw the end");
  CHECK(logged.size() == 3);
  setLogSink(before);
}

TEST_CASE_FIXTURE(Fixture, "without a terminal there is a line every ten seconds and one an epoch") {
  ProgressListener listener(options(false));
  listener.onFitStart(fit(1));
  listener.onEpochStart({trainer});
  for (int i = 1; i <= 25; ++i) {
    clock += 1s;
    listener.onMerge(merge(4 * i, 256, i <= 10 ? 1.0 : 0.5));
  }
  listener.onEpochEnd({trainer, 0, 100, 0.7, 6400});
  listener.onFitEnd(trainer);
  CHECK(plain ==
        "epoch 1/1: 40 % (40 of 100 batches), 256 samples/s, score 1.0000, 0:15 left\n"
        "epoch 1/1: 80 % (80 of 100 batches), 256 samples/s, score 0.7500, 0:05 left\n"
        "epoch 1/1: score 0.7000, 6400 examples in 25.0 s, 256 samples/s\n");
}

TEST_CASE_FIXTURE(Fixture, "a model that has trained before continues to count its epochs") {
  ProgressListener listener(options(false));
  listener.onFitStart({.trainer = trainer, .firstEpoch = 5, .epochs = 5});
  listener.onEpochStart({.trainer = trainer, .epoch = 5});
  clock += 2s;
  listener.onEpochEnd({trainer, 5, 10, 0.25, 100});
  CHECK(plain == "epoch 6/10: score 0.2500, 100 examples in 2.0 s, 50 samples/s\n");
}

namespace {

int countOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// What a model and a wrapper of two workers write to standard error while they train two epochs each.
/// @param take  removes and returns what was written since its last call.
std::vector<std::string> shownBy(int descriptor, const std::function<std::string()>& take,
                                 const Listeners& listeners = {}) {
  auto data = test::ToyIterator::ofValues({1, 2, 3, 4});
  test::ToyModel alone, joint;
  alone.setListeners(listeners);
  const test::StandardError to(descriptor);
  auto wrapper = test::toyWrapper(joint, 2).listeners(listeners).build();
  alone.fit(data, 2);
  std::vector<std::string> shown{take()};
  wrapper.fit(data, 2);
  shown.push_back(take());
  return shown;
}

}  // namespace

TEST_CASE("fit shows its progress in a terminal by itself, unless it is told not to or a listener does") {
  const test::Environment kind("TERM", "xterm");
  test::PseudoTerminal terminal(100, 24);
  const auto take = [&] { return terminal.take(); };
  showProgress(true);
  for (const auto& text : shownBy(terminal.descriptor(), take)) {
    CAPTURE(text);
    CHECK(countOf(text, "epoch 1/2: score ") == 1);
    CHECK(countOf(text, "epoch 2/2: score ") == 1);
  }
  for (const auto& text : shownBy(terminal.descriptor(), take, {std::make_shared<ProgressListener>()}))
    CHECK(countOf(text, "epoch 2/2: score ") == 1);
  const test::TemporaryDirectory directory;
  const int file = ::open((directory / "log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  shownBy(file, [] { return ""; });
  ::close(file);
  CHECK(test::readFile(directory / "log").empty());
  showProgress(false);
  for (const auto& text : shownBy(terminal.descriptor(), take)) CHECK(text == "");
}

}  // namespace muster
