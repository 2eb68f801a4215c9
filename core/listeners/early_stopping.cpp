#include "muster/core/listeners/early_stopping.h"

#include <cmath>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/output_path.h"

namespace muster {
namespace {

std::string epochs(std::int64_t count) {
  return fmt::format("{} epoch{}", count, count == 1 ? "" : "s");
}

}  // namespace

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)),
      monitored_{.validation = options_.validation,
                 .monitor = options_.monitor,
                 .mode = options_.mode,
                 .measure = options_.measure} {
  monitored_.validate("early stopping");
  const auto& o = options_;
  require(o.everyEpochs >= 1, "early stopping: everyEpochs must be at least 1, got {}", o.everyEpochs);
  require(o.patience >= 0, "early stopping: patience cannot be negative, got {}", o.patience);
  require(std::isfinite(o.minImprovement) && o.minImprovement >= 0,
          "early stopping: minImprovement must be finite and not negative, got {}", o.minImprovement);
  require(o.maxTime.count() >= 0, "early stopping: maxTime cannot be negative, got {} ns", o.maxTime.count());
  require(o.patience > 0 || o.maxTime.count() > 0,
          "early stopping: patience and maxTime are both 0, so it would only stop at what is not a number");
}

std::string EarlyStopping::describe() const {
  const auto& o = options_;
  const auto* const data = o.validation;
  return fmt::format(
      "EarlyStopping (monitor={}, mode={}, everyEpochs={}, patience={}, minImprovement={}, maxTime={} ns, "
      "restoreBest={}, examples={}, batchSize={})",
      nameOf(o.monitor), nameOf(*o.mode), o.everyEpochs, o.patience, o.minImprovement, o.maxTime.count(),
      o.restoreBest, data ? data->examples().value_or(-1) : 0, data ? data->batchSize().value_or(-1) : 0);
}

void EarlyStopping::onFitStart(const FitEvent& event) {
  best_.reset();
  lastImprovement_.reset();
  stopped_ = StopReason::None;
  reason_.clear();
  start_ = now();
  if (options_.bestFile.empty() || !onFirstNode()) return;
  require(dynamic_cast<Network*>(&event.trainer.model()) != nullptr,
          "early stopping: bestFile needs a Network, and the model is none");
  checkOutputFile(options_.bestFile);
}

void EarlyStopping::onMerge(const MergeEvent& event) {
  stopIfTooLate(event.trainer, event.epoch);
}

void EarlyStopping::onEpochEnd(const EpochEvent& event) {
  const std::int64_t finished = event.epoch + 1;
  if (finished % options_.everyEpochs != 0) return stopIfTooLate(event.trainer, finished);
  const Result now{finished, monitored_.value(event)};
  if (!std::isfinite(now.value))
    return stop(
        event.trainer, StopReason::NotANumber, finished,
        fmt::format(
            "the {} is {}{}", monitored_.name(), now.value,
            options_.monitor == Monitor::Loss ? ", as of predictions that are no probabilities" : ""));
  if (!best_ || monitored_.gain(now.value, best_->value) > 0) {
    if (options_.restoreBest) kept_.take(event.trainer.model());
    if (!options_.bestFile.empty() && onFirstNode()) writeBest(event.trainer);
    best_ = now;
  }
  if (!lastImprovement_ || monitored_.gain(now.value, lastImprovement_->value) > options_.minImprovement)
    lastImprovement_ = now;
  const std::int64_t without = finished - lastImprovement_->epoch;
  if (options_.patience == 0 || without < options_.patience) return stopIfTooLate(event.trainer, finished);
  const auto least =
      options_.minImprovement > 0 ? fmt::format(" by more than {:.6g}", options_.minImprovement) : "";
  stop(event.trainer, StopReason::NoImprovement, finished,
       fmt::format("the {} has not improved{} for {}", monitored_.name(), least, epochs(without)));
}

void EarlyStopping::onFitEnd(Trainer& trainer) {
  const Kept kept = std::exchange(kept_, {});
  if (!kept.whole) return;
  kept.giveBack(trainer.model());
  if (!onFirstNode()) return;
  writeLine(options_.sink,
            fmt::format("early stopping: the model has its best state, that after epoch {}", best_->epoch));
}

void EarlyStopping::writeBest(Trainer& trainer) const {
  ModelSnapshot(dynamic_cast<Network&>(trainer.model()), trainer.trainingState(), options_.notes)
      .write(options_.bestFile);
}

void EarlyStopping::Kept::take(Model& model) {
  whole = false;
  model.context().synchronize();
  if (copies.empty()) {
    for (const auto* block : model.state())
      if (block->kind != BlockKind::Gradients) state.push_back(block->values);
    copies = copyTo(state, Device::cpu());
  } else {
    for (std::size_t b = 0; b < state.size(); ++b) copy(state[b], copies[b]);
  }
  const auto& last = model.strategyState();
  strategyState.resize(last.size());
  for (std::size_t i = 0; i < last.size(); ++i) {
    strategyState[i].name = last[i].name;
    strategyState[i].values.resize(last[i].values.shape(), last[i].values.dtype());
    copy(last[i].values, strategyState[i].values);
  }
  score = model.score();
  whole = true;
}

void EarlyStopping::Kept::giveBack(Model& model) const {
  model.context().synchronize();
  for (std::size_t b = 0; b < state.size(); ++b) {
    Tensor target = state[b];
    copy(copies[b], target);
  }
  model.strategyState() = strategyState;
  model.setScore(score);
}

void EarlyStopping::stopIfTooLate(Trainer& trainer, std::int64_t epoch) {
  if (options_.maxTime.count() == 0 || !onFirstNode() || stopped_ != StopReason::None ||
      now() - start_ < options_.maxTime)
    return;
  const std::chrono::duration<double> limit = options_.maxTime;
  stop(trainer, StopReason::Time, epoch,
       fmt::format("it has trained for as long as it may, {:.6g} s", limit.count()));
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
