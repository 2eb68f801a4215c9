#include "muster/core/listeners/checkpoint_listener.h"

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/nn/network.h"

namespace muster {

CheckpointListener::CheckpointListener(CheckpointOptions options)
    : options_(std::move(options)), iterations_(options_.everyIterations) {
  const auto& o = options_;
  require(o.everyEpochs >= 0, "checkpoint listener: everyEpochs cannot be negative, got {}", o.everyEpochs);
  require(o.everyIterations >= 0, "checkpoint listener: everyIterations cannot be negative, got {}",
          o.everyIterations);
  require(o.every.count() >= 0, "checkpoint listener: every cannot be negative, got {} ns", o.every.count());
  require(o.everyEpochs > 0 || o.everyIterations > 0 || o.every.count() > 0,
          "checkpoint listener: everyEpochs, everyIterations and every are 0, so nothing would be saved");
  require(o.keepLast >= 0, "checkpoint listener: keepLast cannot be negative, got {}", o.keepLast);
  require(!o.baseName.empty() && o.baseName.find('/') == std::string::npos,
          "checkpoint listener: \"{}\" cannot be the base of a file name", o.baseName);
}

void CheckpointListener::onFitStart(const FitEvent& event) {
  Model& model = event.trainer.model();
  require(options_.save || dynamic_cast<Network*>(&model) != nullptr,
          "checkpoint listener: the model is not a Network; give a `save` function for it");
  std::error_code error;
  std::filesystem::create_directories(options_.directory, error);
  if (error) throw FileError(options_.directory, "cannot be made: " + error.message());
  removeAbandonedTemporaries(options_.directory, options_.baseName + "-epoch-");
  if (options_.resumed && files_.empty())
    for (auto& file : checkpointsIn(options_.directory, options_.baseName))
      files_.push_back(std::move(file.path));
  iterations_.start(model.iteration());
  last_ = now();
  due_ = trainedSince_ = false;
  saved_.reset();
}

void CheckpointListener::onMerge(const MergeEvent& event) {
  trainedSince_ = true;
  due_ = iterations_.passed(event.iteration) || due_ ||
         (options_.every.count() > 0 && now() - last_ >= options_.every);
  if (busy()) return;
  finishWriting();  // a failure is told at the next merge
  if (!due_) return;
  const std::int64_t epoch = event.trainer.model().epoch();
  const TrainingState state = event.trainer.trainingState();
  if (epoch == event.epoch && state.empty()) return;  // not to be resumed from here
  save(event.trainer, state, {epoch, epoch > event.epoch ? 0 : event.iteration});
}

void CheckpointListener::onEpochEnd(const EpochEvent& event) {
  const std::int64_t finished = event.epoch + 1;
  if (due_ || (options_.everyEpochs > 0 && finished % options_.everyEpochs == 0))
    save(event.trainer, event.trainer.trainingState(), {finished, 0});
  trainedSince_ = false;
}

void CheckpointListener::onFitEnd(Trainer& trainer) {
  // A training that was stopped within an epoch; after a failure it has no state.
  if (trainedSince_)
    if (const TrainingState state = trainer.trainingState(); !state.empty())
      save(trainer, state, {trainer.model().epoch(), trainer.model().iteration()});
  finishWriting();
}

void CheckpointListener::save(Trainer& trainer, const TrainingState& state, const CheckpointPlace& place) {
  due_ = trainedSince_ = false;
  last_ = now();
  finishWriting();
  if (std::exchange(saved_, place) == place) return;  // by the last merge, at the end of its epoch
  inWork_ = checkpointPath(options_.directory, options_.baseName, place);
  Model& model = trainer.model();
  if (options_.save) {
    options_.save(model, inWork_);
    return keep();
  }
  { const AtomicFile unused(inWork_); }  // what cannot be written at all is found before the training goes on
  auto& network = dynamic_cast<Network&>(model);
  if (snapshot_)
    snapshot_->take(network, state, options_.notes);
  else
    snapshot_ = std::make_shared<ModelSnapshot>(network, state, options_.notes);
  const auto write = [snapshot = snapshot_, path = inWork_] { snapshot->write(path); };
  try {
    written_ = std::async(std::launch::async, write);
  } catch (const std::system_error&) {  // the system gives no thread
    write();
    keep();
  }
}

bool CheckpointListener::busy() const {
  return written_.valid() && written_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void CheckpointListener::finishWriting() {
  if (!written_.valid()) return;
  written_.get();
  keep();
}

void CheckpointListener::keep() {
  std::erase(files_, inWork_);  // an epoch trained again replaces its file
  files_.push_back(inWork_);
  while (options_.keepLast > 0 && static_cast<std::int64_t>(files_.size()) > options_.keepLast)
    forgetOldest();
}

void CheckpointListener::forgetOldest() {
  std::error_code error;
  std::filesystem::remove(files_.front(), error);
  // A file that cannot be deleted does not end a training.
  if (error)
    logWarning("{}: an old checkpoint cannot be removed: {}", files_.front().string(), error.message());
  files_.pop_front();
}

}  // namespace muster
