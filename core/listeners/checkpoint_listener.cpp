#include "muster/core/listeners/checkpoint_listener.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/input_file.h"
#include "muster/core/nn/network.h"

namespace muster {
namespace {

/// Note in the best checkpoint with the monitored value.
const std::string kValueNote = "checkpoint.value";

bool isTrained(const Model& model) {
  return model.epoch() > 0 || model.iteration() > 0;
}

/// Whether a training that begins with this model may come to that place.
bool isAhead(const CheckpointPlace& place, const Model& model) {
  return !isTrained(model) || place > CheckpointPlace{model.epoch(), model.iteration()};
}

bool isRegularFile(const std::filesystem::path& path) {
  return fileTypeOf(path) == std::filesystem::file_type::regular;
}

/// The checkpoints in the directory, and the best one.
std::set<std::filesystem::path> filesIn(const CheckpointOptions& options) {
  std::set<std::filesystem::path> all;
  for (auto& file : checkpointsIn(options.directory, options.baseName)) all.insert(std::move(file.path));
  if (auto best = bestCheckpointPath(options.directory, options.baseName); isRegularFile(best))
    all.insert(std::move(best));
  return all;
}

}  // namespace

CheckpointListener::CheckpointListener(CheckpointOptions options)
    : options_(std::move(options)),
      iterations_(options_.everyIterations),
      kept_(options_.directory, options_.baseName, options_.keepLast, options_.keepEveryEpochs) {
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
  if (!o.exclusive) before_ = filesIn(o);
}

void CheckpointListener::onFitStart(const FitEvent& event) {
  Model& model = event.trainer.model();
  require(options_.save || dynamic_cast<Network*>(&model) != nullptr,
          "checkpoint listener: the model is not a Network; give a `save` function for it");
  if (options_.best) options_.best->requireFits("checkpoint listener", model);
  std::error_code error;
  std::filesystem::create_directories(options_.directory, error);
  if (error) throw FileError(options_.directory, "cannot be made: " + error.message());
  lock_.reset();
  if (options_.exclusive) lock_.emplace(options_.directory, options_.baseName);
  try {
    requireFiles(model);
    requireOwnFiles(model);
  } catch (...) {
    lock_.reset();
    throw;
  }
  for (const auto* const of : {"-epoch-", "-best."})
    removeAbandonedTemporaries(options_.directory, options_.baseName + of);
  if (options_.resumed) kept_.takeOver();
  if (options_.best && !bestValue_) readBest();  // requireOwnFiles lets only the training's own best pass
  iterations_.start(model.iteration());
  last_ = now();
  due_ = trainedSince_ = false;
  saved_.reset();
}

void CheckpointListener::requireFiles(const Model& model) const {
  for (const auto& [path, place] : checkpointsIn(options_.directory, options_.baseName))
    if (isAhead(place, model) && !isRegularFile(path))
      throw FileError(path, "is not a regular file, but has the name of a checkpoint; remove or rename it");
}

void CheckpointListener::requireOwnFiles(const Model& model) const {
  // A trained model of elastic nodes is of this training, which another node may have saved.
  if (options_.resumed || (!options_.exclusive && isTrained(model))) return;
  CheckpointWriter writer{
      .continues = isTrained(model) ? model.loadedFrom() : std::filesystem::path(),
      .own = kept_.own(),
      .toContinue = "continue it from the newest file, with `resumed` in the CheckpointOptions",
      .toSeparate = "choose another directory or another baseName"};
  if (isTrained(model)) writer.place = CheckpointPlace{model.epoch(), model.iteration()};
  if (!options_.exclusive)
    for (const auto& file : filesIn(options_))
      if (!before_.contains(file)) writer.own.insert(file);  // a node that was lost has written it
  requireOwnCheckpoints(options_.directory, options_.baseName, writer);
}

void CheckpointListener::onMerge(const MergeEvent& event) {
  trainedSince_ = true;
  due_ = iterations_.passed(event.iteration) || due_ ||
         (options_.every.count() > 0 && now() - last_ >= options_.every);
  if (busy()) return;
  finishWriting();  // throws if the last write failed
  // At an epoch's last merge, other listeners have not seen the epoch's end yet: onEpochEnd saves.
  if (!due_ || event.trainer.model().epoch() > event.epoch) return;
  const TrainingState state = event.trainer.trainingState();
  if (state.empty()) return;  // training cannot be resumed from here
  save(event.trainer, state, {event.epoch, event.iteration});
}

void CheckpointListener::onEpochEnd(const EpochEvent& event) {
  const CheckpointPlace place{event.epoch + 1, 0};
  const auto better = options_.best ? betterValue(event) : std::nullopt;
  const bool saves =
      due_ || kept_.isForGood(place) || (options_.everyEpochs > 0 && place.epoch % options_.everyEpochs == 0);
  trainedSince_ = false;
  if (!better && !saves) return;
  const TrainingState state = event.trainer.trainingState();
  if (better) saveBest(event.trainer, state, *better);
  if (saves) save(event.trainer, state, place);
}

void CheckpointListener::onFitEnd(Trainer& trainer) {
  // Save a training that was stopped within an epoch. After a failure there is no state.
  const struct Unlock {
    std::optional<CheckpointLock>& lock;
    ~Unlock() { lock.reset(); }
  } atEnd{lock_};
  std::exception_ptr problem;
  try {
    if (trainedSince_)
      if (const TrainingState state = trainer.trainingState(); !state.empty())
        save(trainer, state, {trainer.model().epoch(), trainer.model().iteration()});
  } catch (...) {
    problem = std::current_exception();
  }
  finishWriting();
  // A process that was killed after its last checkpoint may have left one too many, also if nothing was left
  // to train. Not at the start: the newest may be broken, and the training resumed from an older one.
  kept_.removeOld();
  if (problem) std::rethrow_exception(problem);
}

void CheckpointListener::save(Trainer& trainer, const TrainingState& state, const CheckpointPlace& place) {
  due_ = trainedSince_ = false;
  last_ = now();
  finishCheckpoint();
  if (std::exchange(saved_, place) == place) return;
  Model& model = trainer.model();
  if (options_.save) {
    options_.save(model, kept_.path(place));
    return kept_.add(place);
  }
  inWork_ = place;
  writer_.write(dynamic_cast<Network&>(model), state, options_.notes, kept_.path(place));
}

std::optional<double> CheckpointListener::betterValue(const EpochEvent& event) const {
  const double value = options_.best->value(event);
  if (!std::isfinite(value) || (bestValue_ && options_.best->gain(value, *bestValue_) <= 0)) return {};
  if (options_.acceptBest && !options_.acceptBest(event.trainer)) return {};
  return value;
}

void CheckpointListener::saveBest(Trainer& trainer, const TrainingState& state, double value) {
  ModelNotes notes = options_.notes;
  notes[kValueNote] = fmt::format("{}", value);
  bestWriter_.write(dynamic_cast<Network&>(trainer.model()), state, notes, bestFile());
  kept_.addOwn(bestFile());
  bestValue_ = value;
}

std::filesystem::path CheckpointListener::bestFile() const {
  return bestCheckpointPath(options_.directory, options_.baseName);
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
  kept_.addOwn(bestFile());
}

bool CheckpointListener::busy() const {
  return writer_.busy() || bestWriter_.busy();
}

void CheckpointListener::finishCheckpoint() {
  if (!writer_.begun()) return;
  writer_.finish();
  kept_.add(inWork_);
}

void CheckpointListener::finishWriting() {
  std::exception_ptr problem;
  try {
    bestWriter_.finish();
  } catch (...) {
    problem = std::current_exception();
  }
  finishCheckpoint();
  if (problem) std::rethrow_exception(problem);
}

}  // namespace muster
