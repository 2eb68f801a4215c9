#include "muster/core/listeners/epoch_progress.h"

#include <utility>

namespace muster {
namespace {

/// The last bar of a shorter epoch stays during the next one, until it is redrawn: it would flicker
/// otherwise.
constexpr std::chrono::seconds kShortEpoch{1};

}  // namespace

EpochProgress::EpochProgress(std::int64_t epochs, TerminalOptions options, LinesBelow below)
    : bar_(std::move(options)), below_(std::move(below)), progress_{.epochs = epochs} {}

void EpochProgress::begin(std::int64_t epoch, std::optional<std::int64_t> batches) {
  const bool again = progress_.elapsed < kShortEpoch;
  progress_ = {.epoch = epoch, .epochs = progress_.epochs, .batchesPerEpoch = batches};
  lossSum_ = 0;
  begin_ = bar_.now();
  // A bar may become due over several short epochs. A line is only for an epoch that takes so long itself.
  if (!bar_.onTerminal())
    bar_.restart();
  else if (again)
    bar_.showAgain();
}

void EpochProgress::advance(std::int64_t batches, std::int64_t examples, double lossSum) {
  progress_.batches = batches;
  progress_.examples += examples;
  lossSum_ += lossSum;
  if (progress_.examples > 0) progress_.score = loss();
  if (!bar_.due()) return;
  progress_.elapsed = elapsed();
  const auto drawing = [this](int columns) {
    const std::string below = below_ ? below_(columns, bar_.rows() - 1) : "";
    return progressBar(progress_, columns) + (below.empty() ? "" : "\n" + below);
  };
  bar_.show(drawing, progressLine(progress_));
}

void EpochProgress::end(std::int64_t examples, double score) {
  progress_.examples = examples;
  progress_.score = score;
  progress_.elapsed = elapsed();
  bar_.print(epochLine(progress_));
}

}  // namespace muster
