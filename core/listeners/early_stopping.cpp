#include "muster/core/listeners/early_stopping.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/listeners/detail/stopping_record.h"

namespace muster {
namespace {

/// Two listeners with equal names keep the same numbers.
std::string nameOf(const Monitored& monitored, const EarlyStoppingOptions& options) {
  return fmt::format("early stopping ({}, {}, every {}, above {})", monitored.name(),
                     nameOf(monitored.better()), options.everyEpochs, options.minImprovement);
}

/// Whether the training continues at an epoch's beginning.
bool beginsEpoch(const TrainingState& state) {
  const auto position = positionIn(state);
  return position && position->nextBatch == 0 && position->trainedLater.empty();
}

std::string epochs(std::int64_t count) {
  return plural(count, "epoch");
}

}  // namespace

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)),
      monitored_{.validation = options_.validation,
                 .monitor = options_.monitor,
                 .mode = options_.mode,
                 .measure = options_.measure},
      name_(nameOf(monitored_.validate("early stopping"), options_)),
      bestName_(name_ + ": "),
      file_(options_.bestFile, options_.notes, monitored_) {
  const auto& o = options_;
  require(o.everyEpochs >= 1, "early stopping: everyEpochs must be at least 1, got {}", o.everyEpochs);
  require(o.patience >= 0, "early stopping: patience cannot be negative, got {}", o.patience);
  require(std::isfinite(o.minImprovement) && o.minImprovement >= 0,
          "early stopping: minImprovement must be finite and not negative, got {}", o.minImprovement);
  require(o.maxTime.count() >= 0, "early stopping: maxTime cannot be negative, got {} ns", o.maxTime.count());
  require(o.patience > 0 || o.maxTime.count() > 0 || o.restoreBest || !o.bestFile.empty(),
          "early stopping: patience and maxTime are both 0, and neither restoreBest nor bestFile keeps the "
          "best state, so it would only stop at a NaN");
}

std::string EarlyStopping::describe() const {
  const auto& o = options_;
  const auto* const data = o.validation;
  return fmt::format(
      "EarlyStopping (monitor={}, mode={}, everyEpochs={}, patience={}, minImprovement={}, maxTime={} ns, "
      "restoreBest={}, examples={}, batchSize={})",
      nameOf(o.monitor), nameOf(monitored_.better()), o.everyEpochs, o.patience, o.minImprovement,
      o.maxTime.count(), o.restoreBest, data ? data->examples().value_or(-1) : 0,
      data ? data->batchSize().value_or(-1) : 0);
}

void EarlyStopping::onFitStart(const FitEvent& event) {
  best_.reset();
  lastImprovement_.reset();
  stopped_ = StopReason::None;
  reason_.clear();
  start_ = now();
  kept_ = {};
  numbers_ = detail::StoppingRecord::emptyNumbers();
  Model& model = event.trainer.model();
  monitored_.requireFits("early stopping", model);
  const bool resumed = !model.trainingState().empty();
  if (resumed) namingResumedFile(model, [&] { resume(model); });
  if (!kept_.whole()) eraseValues(model.listenerState(), bestName_);
  remember(model);
  if (file_.wanted() && onFirstNode()) file_.begin(model, resumed);
  if (!resumed) return;
  // The training may have stopped at the checkpoint.
  const std::int64_t evaluated = model.epoch() / options_.everyEpochs * options_.everyEpochs;
  stopIfNoImprovement(event.trainer, evaluated);
  stopIfTooLate(event.trainer, model.epoch());
}

void EarlyStopping::onMerge(const MergeEvent& event) {
  rememberTime();
  stopIfTooLate(event.trainer, event.epoch);
}

void EarlyStopping::onEpochEnd(const EpochEvent& event) {
  const std::int64_t finished = event.epoch + 1;
  if (finished % options_.everyEpochs != 0) return stopIfTooLate(event.trainer, finished);
  const Result now{finished, monitored_.value(event)};
  if (!std::isfinite(now.value))
    return stop(
        event.trainer, StopReason::NotANumber, finished,
        fmt::format("the {} is {}{}", monitored_.name(), now.value,
                    options_.monitor == Monitor::Loss ? ", perhaps because predictions are not probabilities"
                    : options_.monitor == Monitor::R2 ? ", perhaps because all numbers to predict are equal"
                                                      : ""));
  Model& model = event.trainer.model();
  const bool better = !best_ || monitored_.gain(now.value, best_->value) > 0;
  if (better) {
    if (options_.restoreBest && kept_.take(model)) eraseValues(model.listenerState(), bestName_);
    best_ = now;
  }
  if (!lastImprovement_ || monitored_.gain(now.value, lastImprovement_->value) > options_.minImprovement)
    lastImprovement_ = now;
  remember(model);
  if (better && file_.wanted() && onFirstNode()) writeBest(event.trainer);
  stopIfNoImprovement(event.trainer, finished);
  stopIfTooLate(event.trainer, finished);
}

void EarlyStopping::stopIfNoImprovement(Trainer& trainer, std::int64_t epoch) {
  if (!lastImprovement_ || options_.patience == 0) return;
  const std::int64_t without = epoch - lastImprovement_->epoch;
  if (without < options_.patience) return;
  const auto least =
      options_.minImprovement > 0 ? fmt::format(" by more than {:.6g}", options_.minImprovement) : "";
  stop(trainer, StopReason::NoImprovement, epoch,
       fmt::format("the {} has not improved{} for {}", monitored_.name(), least, epochs(without)));
}

void EarlyStopping::onFitEnd(Trainer& trainer) {
  const detail::BestState kept = std::exchange(kept_, {});
  ModelWriter writer = std::exchange(writer_, {});
  if (kept.whole()) {
    Model& model = trainer.model();
    kept.giveBack(model);
    model.trainingState().clear();  // it is not of this state
    model.setLoadedFrom({});
    eraseValues(model.listenerState(), bestName_);
    if (onFirstNode())
      writeLine(options_.sink,
                fmt::format("early stopping: the model has its best state again, the one after epoch {}",
                            best_->epoch));
    // After a resumption, if the file could not be written when the state was new.
    if (file_.wanted() && onFirstNode() && file_.lacks(best_->value) && accepts(trainer))
      file_.write(writer, model, {}, best_->value);
  }
  writer.finish();
}

void EarlyStopping::resume(Model& model) {
  const Tensor* const saved = findValues(model.listenerState(), name_);
  if (saved == nullptr)
    return logInfo("{}: the checkpoint has no state for this listener, so its counts start here", name_);
  const auto field = fmt::format("training state: the listener's \"{}\"", name_);
  const auto record = detail::StoppingRecord::read(*saved, field, model.epoch());
  start_ -= std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(record.seconds));
  if (record.bestEpoch < 1) return;
  best_ = Result{record.bestEpoch, record.bestValue};
  lastImprovement_ = Result{record.improvedEpoch, record.improvedValue};
  kept_.setScore(record.bestScore);
  if (options_.restoreBest) readKept(model);
}

void EarlyStopping::readKept(Model& model) {
  if (kept_.read(model, bestName_)) return;
  eraseValues(model.listenerState(), bestName_);
  // The best file holds no copy of itself.
  if (best_->epoch == model.epoch() && beginsEpoch(model.trainingState()))
    kept_.take(model);
  else
    logWarning(
        "{}: the checkpoint does not hold the best state, the one after epoch {}, so it cannot be restored",
        name_, best_->epoch);
}

void EarlyStopping::remember(Model& model) {
  if (best_)
    detail::StoppingRecord{.bestEpoch = best_->epoch,
                           .bestValue = best_->value,
                           .bestScore = kept_.score(),
                           .improvedEpoch = lastImprovement_->epoch,
                           .improvedValue = lastImprovement_->value}
        .write(numbers_);
  rememberTime();
  putValues(model.listenerState(), name_, numbers_);
  if (kept_.whole()) kept_.putInto(model.listenerState(), bestName_);
}

/// The time makes files differ from run to run, so it is kept only where it counts.
void EarlyStopping::rememberTime() {
  if (options_.maxTime.count() == 0 || !onFirstNode()) return;
  detail::StoppingRecord::writeSeconds(std::chrono::duration<double>(now() - start_).count(), numbers_);
}

bool EarlyStopping::accepts(Trainer& trainer) const {
  return !options_.acceptBest || options_.acceptBest(trainer);
}

void EarlyStopping::writeBest(Trainer& trainer) {
  if (!file_.lacks(best_->value) || !accepts(trainer)) return;
  Model& model = trainer.model();
  auto all = model.listenerState();
  eraseValues(model.listenerState(), bestName_);  // the file is the best state
  file_.write(writer_, model, trainer.trainingState(), best_->value);
  model.listenerState() = std::move(all);
}

void EarlyStopping::stopIfTooLate(Trainer& trainer, std::int64_t epoch) {
  if (options_.maxTime.count() == 0 || !onFirstNode() || stopped_ != StopReason::None ||
      now() - start_ < options_.maxTime)
    return;
  const std::chrono::duration<double> limit = options_.maxTime;
  stop(trainer, StopReason::Time, epoch,
       fmt::format("the training has reached its time limit of {:.6g} s", limit.count()));
}

void EarlyStopping::stop(Trainer& trainer, StopReason stopped, std::int64_t epoch, const std::string& why) {
  stopped_ = stopped;
  reason_ =
      why + (best_ ? fmt::format("; the best was {:.6g} after epoch {}", best_->value, best_->epoch) : "");
  trainer.stopFit();
  if (!onFirstNode()) return;
  writeLine(options_.sink, fmt::format("early stopping after epoch {}: {}", epoch, reason_));
}

}  // namespace muster
