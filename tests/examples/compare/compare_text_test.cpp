#include <doctest/doctest.h>

#include <chrono>
#include <utility>

#include "examples/muster/compare/grid_progress.h"
#include "examples/muster/compare/number_text.h"
#include "examples/muster/compare/text_table.h"
#include "muster/core/base/byte_text.h"

namespace comparing {
namespace {

using namespace std::chrono_literals;

TEST_CASE("numbers are formatted to be read by people") {
  CHECK(groupedNumber(5) == "5");
  CHECK(groupedNumber(999) == "999");
  CHECK(groupedNumber(1000) == "1,000");
  CHECK(groupedNumber(1234567) == "1,234,567");
  CHECK(groupedNumber(-123456) == "-123,456");
  CHECK(muster::byteText(1724320) == "1.72 MB");
  CHECK(muster::byteText(12) == "12 B");
  CHECK(secondsDigits(0.4312) == "0.431");
  CHECK(secondsDigits(43.12) == "43.1");
  CHECK(secondsDigits(4310.4) == "4310");
  CHECK(spreadText({.count = 3, .mean = 0.97123, .deviation = 0.0012}, 100, 2) == "97.12 ± 0.12");
  CHECK(spreadText({.count = 1, .mean = 0.97123}, 100, 2) == "97.12");
}

TEST_CASE("the columns of a table line up, whatever its characters") {
  CHECK(textTable({{"arm", "accuracy", "s"}, {"one", "1 ± 2", "10"}, {"three", "-", "5 *"}}) ==
        "arm    accuracy    s\n"
        "one       1 ± 2   10\n"
        "three         -  5 *\n");
  CHECK(textTable({}).empty());
  CHECK(markdownTable({{"arm", "s"}, {"one", "1 ± 2"}}) == "| arm | s |\n|---|---|\n| one | 1 ± 2 |\n");
}

TEST_CASE("lines are broken between words") {
  CHECK(wrapped("one two three four", 9) == "one two\n  three\n  four\n");
  CHECK(wrapped("± ± ±", 5) == "± ± ±\n");
  CHECK(wrapped("incomprehensible it is", 6) == "incomprehensible\n  it\n  is\n");
}

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
