#include "muster/core/listeners/watch_listener.h"

#include <fmt/ranges.h>

#include "muster/core/listeners/worker_rows.h"
#include "tests/support/environment.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/terminal_screen.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

/// A training of two workers with a clock and a window set by the test.
struct Watched {
  EchoModel model;
  FakeTrainer trainer{model};
  int columns = 80, rows = 12;
  TerminalScreen screen{80};
  std::string written;
  std::chrono::steady_clock::time_point clock{1h};

  WatchListenerOptions options(bool terminal = true) {
    return {.terminal = {.terminal = terminal,
                         .write =
                             [this](std::string_view text) {
                               written += text;
                               screen.write(text);
                             },
                         .columns = [this] { return columns; },
                         .rows = [this] { return rows; },
                         .now = [this] { return clock; }},
            .colour = false,
            .braille = false};
  }

  std::string shown() const { return fmt::format("{}", fmt::join(screen.lines, "\n")); }

  void start(WatchListener& listener) {
    trainer.times = {{.worker = 0}, {.worker = 1}};
    written.clear();
    listener.onFitStart({.trainer = trainer, .firstEpoch = 0, .epochs = 1, .batchesPerEpoch = 100});
    listener.onEpochStart({.trainer = trainer});
  }

  /// Simulates a second in which worker 0 takes a step of 100 examples, and worker 1 one of 50.
  void second(WatchListener& listener, int number, double score) {
    clock += 1s;
    for (auto& worker : trainer.times) {
      const int share = worker.worker == 0 ? 2 : 1;  // halves of the second
      ++worker.batches;
      worker.examples += 50 * share;
      worker.computing += 500ms * share;
      worker.waitingForData += 250ms * (2 - share);
      worker.merging += 250ms * (2 - share);
      listener.workers()->onIteration({.trainer = trainer,
                                       .worker = worker.worker,
                                       .stamp = {},
                                       .examples = 50 * share,
                                       .score = score + worker.worker});
    }
    listener.onMerge({.trainer = trainer, .batchesInEpoch = 2 * number, .examples = 150, .score = score});
  }
};

TEST_CASE_FIXTURE(Watched,
                  "the terminal shows the bar, a row for each worker, and the merged score's curve") {
  WatchListener listener(options());
  start(listener);
  second(listener, 1, 3);
  CHECK(shown() ==
        "epoch 1/1   2% [>              ]  2/100  150 samples/s  score 3.0000  0:49 left\n"
        "worker 0  score 3.0000         100 samples/s  #################################\n"
        "worker 1  score 4.0000          50 samples/s  #################ddddddddmmmmmmmm\n"
        "# computing, d waiting for data, s synchronising, m merging");
  second(listener, 2, 1);
  REQUIRE(screen.lines.size() == 10);
  CHECK(screen.lines[1].starts_with("worker 0  score 1.0000  "));
  CHECK(screen.lines[4].starts_with("    3.0000 '"));
  CHECK(screen.lines[9].starts_with("    1.0000  "));
  CHECK(screen.lines[9].ends_with("."));

  SUBCASE("a window that is too low shows the first of these, and one too narrow what fits") {
    for (int number = 3; const int lines : {7, 4}) {  // with a curve of three lines, and without one
      rows = lines;
      second(listener, number++, 1);
      CHECK(std::ssize(screen.lines) == lines);
    }
    columns = 31;
    screen.resize(31);
    second(listener, 5, 1);
    CHECK(shown() ==
          "epoch 1/1  10%  score 1.4000\n"
          "worker 0  score 1.0000        \n"
          "worker 1  score 2.0000        \n"
          "# computing, d waiting for dat");
    rows = 1;
    second(listener, 6, 1);
    CHECK(screen.lines.size() == 1);
    CHECK_FALSE(screen.wrapped);
    return;
  }
  clock += 1s;
  listener.onEpochEnd({trainer, 0, 100, 0.5, 6400});
  CHECK(screen.lines.size() == 2);
  CHECK(screen.lines[0].starts_with("epoch 1/1: score 0.5000, 6400 examples in "));
  CHECK(screen.lines[1].empty());
  listener.onFitEnd(trainer);
  CHECK(screen.lines.size() == 2);
}

TEST_CASE_FIXTURE(Watched, "the terminal shows colours unless NO_COLOR is set") {
  for (const auto& [value, coloured] :
       {std::pair(std::optional<std::string>(), true), {"", true}, {"1", false}, {"0", false}}) {
    const Environment noColour("NO_COLOR", value);
    auto unset = options();
    unset.colour.reset();
    WatchListener listener(unset);
    start(listener);
    second(listener, 1, 3);
    CHECK(contains(written, "\x1b[32m########") == coloured);
    CHECK_CONTAINS(written, "m");
    listener.onFitEnd(trainer);
  }
}

TEST_CASE_FIXTURE(Watched, "a curve is drawn in braille if the locale is UTF-8") {
  for (const auto& [all, lang, term, braille] : {std::tuple("", "en_GB.UTF-8", "xterm", true),
                                                 {"C", "en_GB.UTF-8", "xterm", false},
                                                 {"C.utf8", "C", "xterm", true},
                                                 {"", "", "xterm", false},
                                                 {"", "C.UTF-8", "linux", false}}) {
    CAPTURE(lang);
    const Environment a("LC_ALL", all), b("LC_CTYPE", ""), c("LANG", lang), d("TERM", term);
    auto unset = options();
    unset.braille.reset();
    WatchListener listener(unset);
    start(listener);
    second(listener, 1, 3);
    second(listener, 2, 1);
    CHECK(contains(written, "\xe2\xa0") == braille);
    listener.onFitEnd(trainer);
  }
}

TEST_CASE_FIXTURE(Watched, "without a terminal the lines are those of the progress listener") {
  WatchListener listener(options(false));
  start(listener);
  for (int i = 1; i <= 10; ++i) second(listener, i, 3);
  CHECK(written == "epoch 1/1: 20 % (20 of 100 batches), 150 samples/s, score 3.0000, 0:40 left\n");
}

TEST_CASE("workers that do not fit the terminal's rows are only counted") {
  const std::vector<WorkerRow> many(1024, WorkerRow{.score = 1e30});
  CHECK(workerRows(many, 60, 4, false) ==
        "worker    0  score 1.000e+30        0 samples/s  \n"
        "worker    1  score 1.000e+30        0 samples/s  \n"
        "and 1022 more workers\n"
        "# computing, d waiting for data, s synchronising, m merging");
  CHECK(workerRows(many, 60, 1, false).empty());
  CHECK(workerRows({}, 60, 4, false).empty());
}

}  // namespace
}  // namespace muster::test
