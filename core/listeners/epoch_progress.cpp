#include "muster/core/listeners/epoch_progress.h"

#include <utility>

namespace muster {

EpochProgress::EpochProgress(std::int64_t epochs, TerminalOptions options)
    : bar_(std::move(options)), progress_{.epochs = epochs} {}

void EpochProgress::begin(std::int64_t epoch, std::optional<std::int64_t> batches) {
  progress_ = {.epoch = epoch, .epochs = progress_.epochs, .batchesPerEpoch = batches};
  lossSum_ = 0;
  begin_ = bar_.now();
  bar_.restart();
}

void EpochProgress::advance(std::int64_t batches, std::int64_t examples, double lossSum) {
  progress_.batches = batches;
  progress_.examples += examples;
  lossSum_ += lossSum;
  if (progress_.examples > 0) progress_.score = loss();
  if (!bar_.due()) return;
  progress_.elapsed = elapsed();
  bar_.show([this](int columns) { return progressBar(progress_, columns); }, progressLine(progress_));
}

void EpochProgress::end(std::int64_t examples, double score) {
  progress_.examples = examples;
  progress_.score = score;
  progress_.elapsed = elapsed();
  bar_.print(epochLine(progress_));
}

}  // namespace muster
