// Tests the last lines of a terminal on pseudo-terminals.
#include "muster/core/listeners/terminal_bar.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <csignal>

#include "muster/core/base/interrupt.h"
#include "muster/core/base/log.h"
#include "tests/support/environment.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/terminal_screen.h"
#include "tests/support/test.h"

namespace muster {
namespace {

/// Lines of so many equal letters.
std::vector<std::string> lettersOf(int columns, int count) {
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i)
    lines.emplace_back(static_cast<std::size_t>(columns), static_cast<char>('a' + i));
  return lines;
}

void draw(TerminalBar& bar, int lines) {
  bar.show([&](int columns) { return fmt::format("{}", fmt::join(lettersOf(columns, lines), "\n")); }, "");
}

}  // namespace

TEST_CASE("no part of an older drawing stays, whatever the window's width becomes") {
  test::PseudoTerminal terminal(60, 20);
  const test::Environment kind("TERM", "xterm");
  const test::StandardError redirected(terminal.descriptor());
  test::TerminalScreen screen(60);
  screen.write("go\r\n");
  std::optional<TerminalBar> bar(TerminalOptions{});
  REQUIRE(bar->onTerminal());
  CHECK(bar->rows() == 20);
  const auto expect = [&](int columns, int lines) {
    auto expected = lettersOf(columns - 1, lines);
    expected.insert(expected.begin(), "go");
    screen.write(terminal.take());
    CHECK(screen.lines == expected);
  };
  draw(*bar, 3);
  expect(60, 3);
  for (const int columns : {25, 7, 3, 33, 60, 14}) {
    CAPTURE(columns);
    terminal.resize(columns, 20);
    screen.resize(columns);
    draw(*bar, 3);
    expect(columns, 3);
    draw(*bar, 1);  // a drawing with fewer lines
    expect(columns, 1);
    draw(*bar, 4);
    expect(columns, 4);
  }
  terminal.resize(9, 20);
  screen.resize(9);
  logInfo("log");
  screen.write(terminal.take());
  CHECK(screen.lines.front() == "go");
  CHECK(screen.lines.back() == std::string(9, 'd'));  // of 13: not redrawn yet
  screen.resize(60);
  terminal.resize(60, 20);
  bar->print("done");
  bar.reset();
  screen.write(terminal.take());
  REQUIRE(screen.lines.size() == 5);
  CHECK(screen.lines[1] == "muster:");  // of a log line in nine columns
  CHECK(screen.lines[2].ends_with("log"));
  CHECK(screen.lines[3] == "done");
  CHECK(screen.lines[4].empty());
}

TEST_CASE("Ctrl-C shows its notice above the bar, and what the terminal echoes is removed") {
  test::PseudoTerminal terminal(60, 20);
  const test::Environment kind("TERM", "xterm");
  const test::StandardError redirected(terminal.descriptor());
  test::TerminalScreen screen(60);
  TerminalBar bar;
  draw(bar, 2);
  const Interrupt interrupt("notice");
  REQUIRE(::write(terminal.descriptor(), "^C", 2) == 2);
  REQUIRE(std::raise(SIGINT) == 0);
  while (!interrupt.requested()) std::this_thread::yield();
  screen.write(terminal.take());
  CHECK(screen.lines ==
        std::vector<std::string>{"muster: notice", std::string(59, 'a'), std::string(59, 'b')});
}

TEST_CASE("nothing is drawn if standard error is no terminal, or one that cannot move its cursor") {
  test::PseudoTerminal terminal(60, 20);
  const test::StandardError redirected(terminal.descriptor());
  {
    const test::Environment kind("TERM", "dumb");
    TerminalBar bar;
    CHECK_FALSE(bar.onTerminal());
    bar.show([](int) { return "bar"; }, "line");
    CHECK(terminal.take() == "line\r\n");
  }
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  {
    const test::Environment kind("TERM", "xterm");
    const test::StandardError pipe(ends[1]);
    CHECK_FALSE(TerminalBar().onTerminal());
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace muster
