#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// Where and how progress is shown. An empty member is that of standard error.
struct TerminalOptions {
  std::optional<bool> terminal = {};                 ///< whether to draw a bar
  std::function<void(std::string_view)> write = {};  ///< receives bytes unchanged
  std::function<int()> columns = {};                 ///< the terminal's width
  std::function<int()> rows = {};                    ///< and its height
  std::function<std::chrono::steady_clock::time_point()> now = {};
};

/// Whether standard error is a terminal in which a bar can be drawn.
bool standardErrorIsTerminal();

/// The last lines of a terminal, one or more, in which a bar is redrawn in place; elsewhere, lines one after
/// the other. While it lives, log lines appear above the bar; afterwards no trace of the bar is left. One
/// thread at a time, but any thread may log.
///
/// Between two writes the cursor is at the bar's beginning, so that all of the bar comes after it, also where
/// a window has shrunk and the terminal has wrapped its lines.
class TerminalBar {
 public:
  explicit TerminalBar(TerminalOptions options = {});
  ~TerminalBar();
  TerminalBar(const TerminalBar&) = delete;
  TerminalBar& operator=(const TerminalBar&) = delete;

  bool onTerminal() const { return screen_ != nullptr; }
  std::chrono::steady_clock::time_point now() const { return options_.now(); }

  /// Whether progress should be shown again: 100 ms after the last time on a terminal, 10 s elsewhere.
  bool due() const;
  /// Progress is due one interval from now.
  void restart() { lastShown_ = now(); }
  /// Rows that a bar may take.
  int rows() const { return options_.rows(); }
  /// Draws a bar, given the columns that it may take: lines with '\n' between them. Without a terminal it
  /// writes `line`, unless that is empty.
  void show(const std::function<std::string(int columns)>& bar, const std::string& line);
  /// Draws the bar again that a line has replaced, on a terminal and unless a new one is due.
  void showAgain();
  /// Replaces the bar by a permanent line.
  void print(const std::string& line);

 private:
  class Screen;

  TerminalOptions options_;
  std::shared_ptr<Screen> screen_;  // the log's sink shares it; nullptr without a terminal
  std::chrono::steady_clock::time_point lastShown_;
};

}  // namespace muster
