#include "muster/core/listeners/progress_listener.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string>

#include "muster/core/base/log.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr auto kBarInterval = 100ms;
constexpr auto kLineInterval = 10s;
constexpr int kUsualColumns = 80;

bool standardErrorIsTerminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

int standardErrorColumns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

void writeToStandardError(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // a closed terminal does not end a training
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

/// The last line of a terminal, which shows the bar. Workers may log meanwhile, so all members are
/// thread-safe.
class ProgressListener::Screen {
 public:
  explicit Screen(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

  void draw(std::string bar) {
    std::scoped_lock lock(mutex_);
    bar_ = std::move(bar);
    // The rest of the line is erased after the text: erasing it first would flicker.
    write_("\r" + bar_ + "\x1b[K");
  }
  void clear() {
    std::scoped_lock lock(mutex_);
    erase();
    bar_.clear();
  }
  /// Replaces the bar by a permanent line.
  void print(const std::string& line) {
    std::scoped_lock lock(mutex_);
    erase();
    bar_.clear();
    write_(line + "\n");
  }
  /// Calls `printLine`, which writes above the bar.
  void above(const std::function<void()>& printLine) {
    std::scoped_lock lock(mutex_);
    erase();
    printLine();
    if (!bar_.empty()) write_(bar_);
  }

  /// Hooks into the log, so that log lines appear above the bar.
  static void hookLog(const std::shared_ptr<Screen>& screen) {
    LogSink before = setLogSink({});
    screen->sinkBefore_ = before;
    setLogSink([screen, before](LogLevel level, std::string_view text) {
      screen->above([&] { before ? before(level, text) : printLogLine(level, text); });
    });
  }
  void unhookLog() { setLogSink(std::move(sinkBefore_)); }

 private:
  void erase() {
    if (!bar_.empty()) write_("\r\x1b[K");
  }

  std::mutex mutex_;
  const std::function<void(std::string_view)> write_;  // called with mutex_ held
  std::string bar_;                                    // on the screen now; guarded by mutex_
  LogSink sinkBefore_;                                 // caller's thread only
};

ProgressListener::ProgressListener(ProgressOptions options) : options_(std::move(options)) {
  if (!options_.terminal) options_.terminal = standardErrorIsTerminal();
  if (!options_.write) options_.write = writeToStandardError;
  if (!options_.columns) options_.columns = standardErrorColumns;
}

ProgressListener::~ProgressListener() {
  if (screen_) screen_->unhookLog();
}

void ProgressListener::onFitStart(const FitEvent& event) {
  progress_ = {};
  progress_.epochs = options_.lastEpoch.value_or(event.firstEpoch + event.epochs);
  progress_.batchesPerEpoch = event.batchesPerEpoch;
  if (!*options_.terminal || screen_) return;
  screen_ = std::make_shared<Screen>(options_.write);
  Screen::hookLog(screen_);
}

void ProgressListener::onEpochStart(const EpochEvent& event) {
  progress_.epoch = event.epoch + 1;
  progress_.batches = progress_.examples = 0;
  progress_.score.reset();
  scoreSum_ = 0;
  epochBegin_ = lastShown_ = now();
}

void ProgressListener::onMerge(const MergeEvent& event) {
  progress_.batches = event.batchesInEpoch;
  progress_.examples += event.examples;
  scoreSum_ += event.score * static_cast<double>(event.examples);
  if (progress_.examples > 0) progress_.score = scoreSum_ / static_cast<double>(progress_.examples);
  const auto time = now();
  if (time - lastShown_ < (screen_ ? Clock::duration(kBarInterval) : Clock::duration(kLineInterval))) return;
  lastShown_ = time;
  progress_.elapsed = time - epochBegin_;
  // Some terminals wrap when the last column is written, so it stays empty.
  if (screen_)
    screen_->draw(progressBar(progress_, options_.columns() - 1));
  else
    options_.write(progressLine(progress_) + "\n");
}

void ProgressListener::onEpochEnd(const EpochEvent& event) {
  progress_.examples = event.examples;
  progress_.score = event.score;
  progress_.elapsed = now() - epochBegin_;
  const std::string line = epochLine(progress_);
  screen_ ? screen_->print(line) : options_.write(line + "\n");
}

void ProgressListener::onFitEnd(Trainer&) {
  if (!screen_) return;
  screen_->clear();
  screen_->unhookLog();
  screen_.reset();
}

}  // namespace muster
