#include "muster/core/listeners/progress_listener.h"

#include <utility>

namespace muster {

ProgressListener::ProgressListener(ProgressOptions options) : options_(std::move(options)) {}

void ProgressListener::onFitStart(const FitEvent& event) {
  progress_.emplace(options_.lastEpoch.value_or(event.firstEpoch + event.epochs), options_.terminal,
                    options_.below);
  batchesPerEpoch_ = event.batchesPerEpoch;
}

void ProgressListener::onEpochStart(const EpochEvent& event) {
  progress_->begin(event.epoch + 1, batchesPerEpoch_);
}

void ProgressListener::onMerge(const MergeEvent& event) {
  progress_->advance(event.batchesInEpoch, event.examples, event.score * static_cast<double>(event.examples));
}

void ProgressListener::onEpochEnd(const EpochEvent& event) {
  progress_->end(event.examples, event.score);
}

void ProgressListener::onFitEnd(Trainer&) {
  progress_.reset();
}

}  // namespace muster
