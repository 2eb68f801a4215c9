#include "muster/core/listeners/checkpoint_listener.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/nn/network.h"

namespace muster {
namespace {

/// Note in the best checkpoint with the monitored value.
const std::string kValueNote = "checkpoint.value";

}  // namespace

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
  require(o.keepEveryEpochs >= 0, "checkpoint listener: keepEveryEpochs cannot be negative, got {}",
          o.keepEveryEpochs);
  require(o.keepEveryEpochs == 0 || o.keepLast > 0,
          "checkpoint listener: keepEveryEpochs {} has no effect with keepLast 0, which keeps all",
          o.keepEveryEpochs);
  if (o.best) {
    o.best->validate("checkpoint listener");
    require(!o.save, "checkpoint listener: best works with Networks only, not with `save`");
    require(!o.notes.contains(kValueNote), "checkpoint listener: the note {} is reserved", kValueNote);
  }
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
  for (const auto* const of : {"-epoch-", "-best."})
    removeAbandonedTemporaries(options_.directory, options_.baseName + of);
  if (options_.resumed && files_.empty())
    for (auto& file : checkpointsIn(options_.directory, options_.baseName))
      if (!isKeptForGood(file.place)) files_.push_back(std::move(file.path));
  if (options_.resumed && options_.best && !bestValue_) readBest();
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
  finishWriting();  // throws if the last write failed
  if (!due_) return;
  const std::int64_t epoch = event.trainer.model().epoch();
  const TrainingState state = event.trainer.trainingState();
  if (epoch == event.epoch && state.empty()) return;  // training cannot be resumed from here
  save(event.trainer, state, {epoch, epoch > event.epoch ? 0 : event.iteration});
}

void CheckpointListener::onEpochEnd(const EpochEvent& event) {
  const std::int64_t finished = event.epoch + 1;
  if (due_ || (options_.everyEpochs > 0 && finished % options_.everyEpochs == 0)) {
    const TrainingState state = event.trainer.trainingState();
    if (options_.best) saveBest(event, state);
    save(event.trainer, state, {finished, 0});
  }
  trainedSince_ = false;
}

void CheckpointListener::onFitEnd(Trainer& trainer) {
  // Save a training that was stopped within an epoch. After a failure there is no state.
  if (trainedSince_)
    if (const TrainingState state = trainer.trainingState(); !state.empty())
      save(trainer, state, {trainer.model().epoch(), trainer.model().iteration()});
  finishWriting();
}

void CheckpointListener::save(Trainer& trainer, const TrainingState& state, const CheckpointPlace& place) {
  due_ = trainedSince_ = false;
  last_ = now();
  finishWriting();
  if (std::exchange(saved_, place) == place) return;  // the epoch's last merge has saved it
  inWork_ = checkpointPath(options_.directory, options_.baseName, place);
  Model& model = trainer.model();
  if (options_.save) {
    options_.save(model, inWork_);
    return keep();
  }
  { const AtomicFile unused(inWork_); }  // throws now if the file cannot be written
  auto& network = dynamic_cast<Network&>(model);
  if (snapshot_)
    snapshot_->take(network, state, options_.notes);
  else
    snapshot_ = std::make_shared<ModelSnapshot>(network, state, options_.notes);
  const auto write = [snapshot = snapshot_, path = inWork_] { snapshot->write(path); };
  try {
    written_ = std::async(std::launch::async, write);
  } catch (const std::system_error&) {  // no thread available: write here
    write();
    keep();
  }
}

void CheckpointListener::saveBest(const EpochEvent& event, const TrainingState& state) {
  const double value = options_.best->value(event);
  if (!std::isfinite(value) || (bestValue_ && options_.best->gain(value, *bestValue_) <= 0)) return;
  ModelNotes notes = options_.notes;
  notes[kValueNote] = fmt::format("{}", value);
  ModelSnapshot(dynamic_cast<Network&>(event.trainer.model()), state, notes).write(bestFile());
  bestValue_ = value;
}

std::filesystem::path CheckpointListener::bestFile() const {
  return options_.directory / (options_.baseName + "-best.safetensors");
}

void CheckpointListener::readBest() {
  if (!std::filesystem::exists(bestFile())) return;
  const ModelNotes notes = readModelNotes(bestFile());
  const auto note = notes.find(kValueNote);
  double value = 0;
  const auto text = note == notes.end() ? std::string() : note->second;
  const char* const end = text.data() + text.size();
  if (const auto [rest, error] = std::from_chars(text.data(), end, value);
      error != std::errc() || rest != end)
    throw FileError(bestFile(),
                    "does not hold the monitored value: it was not written by a checkpoint listener");
  bestValue_ = value;
}

bool CheckpointListener::isKeptForGood(const CheckpointPlace& place) const {
  return options_.keepEveryEpochs > 0 && place.iteration == 0 && place.epoch % options_.keepEveryEpochs == 0;
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
  std::erase(files_, inWork_);  // training an epoch again replaces its file
  if (!saved_ || !isKeptForGood(*saved_)) files_.push_back(inWork_);
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
