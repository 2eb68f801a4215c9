#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <utility>

#include "examples/muster/compare/grid_progress.h"

namespace comparing {
namespace {

using namespace std::chrono_literals;

TEST_CASE("the bar never exceeds its columns, and omits the name first") {
  const GridState state{
      .run = 5, .runs = 18, .name = "averaging every 10, seed 1", .share = 0.26, .secondsLeft = 200};
  CHECK(gridBar(state, 200) == "run 5/18  26% [=====>              ] averaging every 10, seed 1  3:20 left");
  CHECK(gridBar(state, 60) == "run 5/18  26% [=====>              ]  3:20 left");
  CHECK(gridBar(state, 30) == "run 5/18  26%  3:20 left");
  for (int columns = 0; columns < 100; ++columns)
    CHECK(gridBar(state, columns).size() <= static_cast<std::size_t>(columns));
}

/// Progress with a simulated clock, and its output.
struct Shown {
  explicit Shown(bool terminal) {
    progress.emplace(
        GridProgressOptions{.runs = 4,
                            .finished = 1,
                            .samplesPerRun = 100,
                            .terminal = {.terminal = terminal,
                                         .write = [this](std::string_view text) { written += text; },
                                         .columns = [] { return 200; },
                                         .now = [this] { return time; }}});
  }
  std::string take() { return std::exchange(written, {}); }

  std::chrono::steady_clock::time_point time{1h};
  std::string written;
  std::optional<GridProgress> progress;
};

TEST_CASE("on a terminal a bar is redrawn, with the time left at the rate of this session") {
  Shown shown(true);
  shown.progress->begin("first");
  CHECK(shown.take() == "\x1b[?7l\rrun 2/4  25% [=====>              ] first\x1b[J\x1b[?7h\r");
  shown.time += 50ms;
  shown.progress->advance(10);
  CHECK(shown.take().empty());
  shown.time += 9950ms;
  // Half of the first of three runs took 10 s; two and a half runs are left.
  shown.progress->advance(50);
  CHECK(shown.take() == "\x1b[?7l\rrun 2/4  37% [=======>            ] first  0:50 left\x1b[J\x1b[?7h\r");
  shown.time += 10s;
  shown.progress->finish("first: 97 %");
  CHECK(shown.take() == "\r\x1b[Jrun 2/4: first: 97 %; 0:40 left\n");
  shown.progress->begin("second");
  shown.take();
  shown.progress.reset();
  CHECK(shown.take() == "\r\x1b[J");
}

TEST_CASE("without a terminal the bar is written as lines") {
  Shown shown(false);
  for (const char* name : {"first", "second", "third"}) {
    shown.progress->begin(name);
    shown.time += 10s;
    shown.progress->advance(50);
    shown.progress->finish(name);
  }
  CHECK(shown.take() == "run 2/4: first; 0:20 left\nrun 3/4: second; 0:10 left\nrun 4/4: third\n");
}

}  // namespace
}  // namespace comparing
