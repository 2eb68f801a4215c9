#include "examples/support/epoch_progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace example {
namespace {

using namespace std::chrono_literals;

/// One less than the terminal has, as it may wrap as soon as its last column is written.
int columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (known ? size.ws_col : 80) - 1;
}

}  // namespace

EpochProgress::EpochProgress(std::int64_t epoch, std::int64_t epochs, std::int64_t batches)
    : progress_{.epoch = epoch, .epochs = epochs, .batchesPerEpoch = batches},
      terminal_(::isatty(STDERR_FILENO) != 0) {}

EpochProgress::~EpochProgress() {
  if (terminal_) fmt::print(stderr, "\r\x1b[K");
}

void EpochProgress::add(std::int64_t examples, double lossSum) {
  ++progress_.batches;
  progress_.examples += examples;
  lossSum_ += lossSum;
  const auto now = Clock::now();
  if (now - lastShown_ < (terminal_ ? Clock::duration(100ms) : Clock::duration(10s))) return;
  lastShown_ = now;
  show();
}

void EpochProgress::show() {
  progress_.elapsed = elapsed();
  progress_.score = loss();
  if (terminal_)
    fmt::print(stderr, "\r{}\x1b[K", muster::progressBar(progress_, columns()));
  else
    fmt::print(stderr, "{}\n", muster::progressLine(progress_));
}

}  // namespace example
