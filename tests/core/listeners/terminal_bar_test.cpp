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

namespace muster::test {
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

/// A terminal of 60 columns that standard error writes to, and what it shows.
struct Terminal {
  /// Reads what was written since the last call.
  const std::vector<std::string>& lines() {
    screen.write(pseudo.take());
    return screen.lines;
  }
  void resize(int columns) {
    pseudo.resize(columns, 20);
    screen.resize(columns);
  }
  PseudoTerminal pseudo{60, 20};
  Environment kind{"TERM", "xterm"};
  StandardError redirected{pseudo.descriptor()};
  TerminalScreen screen{60};
};

TEST_CASE("no part of an older drawing stays, whatever the window's width becomes") {
  Terminal terminal;
  const auto& lines = terminal.screen.lines;
  terminal.screen.write("go\r\n");
  std::optional<TerminalBar> bar(TerminalOptions{});
  REQUIRE(bar->onTerminal());
  CHECK(bar->rows() == 20);
  for (const int columns : {60, 25, 7, 3, 33, 60, 14}) {
    CAPTURE(columns);
    terminal.resize(columns);
    for (const int count : {3, 1, 4}) {
      draw(*bar, count);
      auto expected = lettersOf(columns - 1, count);
      expected.insert(expected.begin(), "go");
      CHECK(terminal.lines() == expected);
    }
  }
  terminal.resize(9);
  logInfo("log");
  CHECK(terminal.lines().front() == "go");
  CHECK(lines.back() == std::string(9, 'd'));  // of 13: not redrawn yet
  terminal.resize(60);
  bar->print("done");
  bar.reset();
  REQUIRE(terminal.lines().size() == 5);
  CHECK(lines[1] == "muster:");  // of a log line in nine columns
  CHECK(lines[2].ends_with("log"));
  CHECK(textOf(lines[3], lines[4]) == "done ");
}

TEST_CASE("Ctrl-C shows its notice above the bar, and what the terminal echoes is removed") {
  Terminal terminal;
  TerminalBar bar;
  draw(bar, 2);
  const Interrupt interrupt("notice");
  REQUIRE(::write(terminal.pseudo.descriptor(), "^C", 2) == 2);
  REQUIRE(std::raise(SIGINT) == 0);
  while (!interrupt.requested()) std::this_thread::yield();
  CHECK(terminal.lines() ==
        std::vector<std::string>{"muster: notice", std::string(59, 'a'), std::string(59, 'b')});
}

TEST_CASE("nothing is drawn if standard error is no terminal, or one that cannot move its cursor") {
  Terminal terminal;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  {
    const StandardError pipe(ends[1]);
    CHECK_FALSE(TerminalBar().onTerminal());
  }
  const Environment kind("TERM", "dumb");
  TerminalBar bar;
  CHECK_FALSE(bar.onTerminal());
  bar.show([](int) { return "bar"; }, "line");
  CHECK(terminal.pseudo.take() == "line\r\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace muster::test
