#include "muster/core/listeners/terminal_bar.h"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "muster/core/base/log.h"
#include "muster/core/base/mutex.h"
#include "muster/core/base/terminal_size.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Clock::duration kBarInterval = 100ms;
constexpr Clock::duration kLineInterval = 10s;

/// Draws the bar's lines at the cursor and returns to its first line. Old text is erased after the new text
/// is written: erasing first would flicker. Wrapping is off meanwhile, because the window may have shrunk.
std::string drawing(std::string_view bar) {
  std::string text = "\x1b[?7l\r";
  for (const char c : bar) text += c == '\n' ? std::string("\x1b[K\r\n") : std::string(1, c);
  text += "\x1b[J\x1b[?7h\r";
  if (const auto up = std::ranges::count(bar, '\n'); up > 0) text += fmt::format("\x1b[{}A", up);
  return text;
}

void writeToStandardError(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // training continues after the terminal is closed
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

bool standardErrorIsTerminal() {
  const char* kind = std::getenv("TERM");
  return terminalSize() && kind != nullptr && std::string_view(kind) != "dumb";
}

/// Workers may log while the bar is drawn, so all members except hookLog and unhookLog are thread-safe.
class TerminalBar::Screen {
 public:
  explicit Screen(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

  void draw(std::string bar) {
    const Lock lock(mutex_);
    bar_ = std::move(bar);
    write();
  }
  /// Draws the last bar if it is not on the screen.
  void drawAgain() {
    const Lock lock(mutex_);
    if (!drawn_ && !bar_.empty()) write();
  }
  /// Erases the bar and writes `text` in its place.
  void replace(const std::string& text) {
    const Lock lock(mutex_);
    erase();
    drawn_ = false;
    if (!text.empty()) write_(text);
  }

  /// From now on log lines appear above the bar.
  static void hookLog(const std::shared_ptr<Screen>& screen) {
    LogSink before = setLogSink({});
    screen->sinkBefore_ = before;
    setLogSink([screen, before](LogLevel level, std::string_view text) {
      const Lock lock(screen->mutex_);
      screen->erase();
      before ? before(level, text) : printLogLine(level, text);
      if (screen->drawn_) screen->write();
    });
  }
  void unhookLog() { setLogSink(std::move(sinkBefore_)); }

 private:
  void write() MUSTER_REQUIRES(mutex_) {
    write_(drawing(bar_));
    drawn_ = true;
  }
  void erase() MUSTER_REQUIRES(mutex_) {
    if (drawn_) write_("\r\x1b[J");
  }

  Mutex mutex_;
  const std::function<void(std::string_view)> write_;  // called with mutex_ held
  std::string bar_ MUSTER_GUARDED_BY(mutex_);          // the last one
  bool drawn_ MUSTER_GUARDED_BY(mutex_) = false;       // it is on the screen now
  LogSink sinkBefore_;                                 // caller's thread only
};

TerminalBar::TerminalBar(TerminalOptions options) : options_(std::move(options)) {
  if (!options_.write) options_.write = writeToStandardError;
  if (!options_.columns) options_.columns = [] { return terminalSize().value_or(TerminalSize()).columns; };
  if (!options_.rows) options_.rows = [] { return terminalSize().value_or(TerminalSize()).rows; };
  if (!options_.now) options_.now = Clock::now;
  restart();
  if (!options_.terminal.value_or(standardErrorIsTerminal())) return;
  screen_ = std::make_shared<Screen>(options_.write);
  Screen::hookLog(screen_);
}

TerminalBar::~TerminalBar() {
  if (!screen_) return;
  screen_->replace("");
  screen_->unhookLog();
}

bool TerminalBar::due() const {
  return now() - lastShown_ >= (onTerminal() ? kBarInterval : kLineInterval);
}

void TerminalBar::show(const std::function<std::string(int columns)>& bar, const std::string& line) {
  restart();
  // Some terminals wrap when the last column is written, so it stays empty.
  if (onTerminal())
    screen_->draw(bar(options_.columns() - 1));
  else if (!line.empty())
    options_.write(line + "\n");
}

void TerminalBar::showAgain() {
  if (onTerminal() && !due()) screen_->drawAgain();
}

void TerminalBar::print(const std::string& line) {
  onTerminal() ? screen_->replace(line + "\n") : options_.write(line + "\n");
}

}  // namespace muster
