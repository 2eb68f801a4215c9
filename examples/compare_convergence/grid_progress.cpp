#include "examples/compare_convergence/grid_progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "muster/core/base/log.h"

namespace convergence {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 100ms;
constexpr int kBarWidth = 22;
constexpr std::string_view kErase = "\r\x1b[K";  // the line

bool isTerminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

int terminalColumns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ? 80 : size.ws_col;
}

void writeToStandardError(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // a closed terminal is no reason to end the comparison
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// As in `0:07`, `12:34` or `1:02:03`.
std::string durationText(double seconds) {
  const auto s = static_cast<std::int64_t>(std::ceil(seconds));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

std::string gridBar(const GridState& state, int columns) {
  const auto width = static_cast<std::size_t>(std::max(columns, 0));
  const auto inside = static_cast<std::size_t>(kBarWidth - 2);
  const auto filled = std::min(inside, static_cast<std::size_t>(state.share * static_cast<double>(inside)));
  std::string bar(filled, '=');
  if (filled < inside) bar += '>';
  bar.resize(inside, ' ');
  const auto counts =
      fmt::format("run {}/{} {:>3}%", state.run, state.runs, static_cast<int>(state.share * 100));
  const auto left = state.secondsLeft ? fmt::format("  {} left", durationText(*state.secondsLeft)) : "";
  for (const auto& text : {fmt::format("{} [{}] {}{}", counts, bar, state.name, left),
                           fmt::format("{} [{}]{}", counts, bar, left), counts + left})
    if (text.size() <= width) return text;
  return counts.substr(0, width);
}

GridProgress::GridProgress(GridProgressOptions options)
    : options_(std::move(options)),
      shareAtStart_(static_cast<double>(options_.finished) / static_cast<double>(options_.runs)),
      begin_(options_.now ? options_.now() : Clock::now()) {
  if (!options_.terminal) options_.terminal = isTerminal();
  if (!options_.write) options_.write = writeToStandardError;
  if (!options_.columns) options_.columns = terminalColumns;
  if (!options_.now) options_.now = Clock::now;
  if (!*options_.terminal) return;
  // The bar comes back with the next merge.
  logBefore_ = muster::setLogSink([write = options_.write](muster::LogLevel level, std::string_view text) {
    write(kErase);
    muster::printLogLine(level, text);
  });
}

GridProgress::~GridProgress() {
  clear();
  if (*options_.terminal) muster::setLogSink(std::move(logBefore_));
}

double GridProgress::share(std::int64_t samples) const {
  const double ofRun = static_cast<double>(samples) / static_cast<double>(options_.samplesPerRun);
  return (static_cast<double>(options_.finished) + ofRun) / static_cast<double>(options_.runs);
}

std::optional<double> GridProgress::secondsLeft(double share) const {
  if (share <= shareAtStart_) return std::nullopt;
  const double elapsed = std::chrono::duration<double>(options_.now() - begin_).count();
  return elapsed * (1 - share) / (share - shareAtStart_);
}

void GridProgress::begin(const std::string& name) {
  name_ = name;
  lastDrawn_ = options_.now() - kInterval;
  advance(0);
}

void GridProgress::advance(std::int64_t samples) {
  if (!*options_.terminal) return;
  const auto time = options_.now();
  if (time - lastDrawn_ < kInterval) return;
  lastDrawn_ = time;
  const GridState state{.run = options_.finished + 1,
                        .runs = options_.runs,
                        .name = name_,
                        .share = share(samples),
                        .secondsLeft = secondsLeft(share(samples))};
  // A terminal may wrap as soon as its last column is written, so that one stays empty. The rest of the line
  // is erased after the text, not before it, which would flicker.
  options_.write(fmt::format("\r{}\x1b[K", gridBar(state, options_.columns() - 1)));
  drawn_ = true;
}

void GridProgress::finish(const std::string& line) {
  clear();
  ++options_.finished;
  const auto left = secondsLeft(share(0));
  const auto rest = left && options_.finished < options_.runs ? fmt::format("; {} left", durationText(*left))
                                                              : std::string();
  options_.write(fmt::format("run {}/{}: {}{}\n", options_.finished, options_.runs, line, rest));
}

void GridProgress::clear() {
  if (std::exchange(drawn_, false)) options_.write(kErase);
}

}  // namespace convergence
