#include "muster/core/listeners/early_stopping.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/eval/evaluation.h"

namespace muster {
namespace {

std::string_view nameOf(Monitor monitor) {
  switch (monitor) {
    case Monitor::Accuracy:
      return "validation accuracy";
    case Monitor::Loss:
      return "validation loss";
    case Monitor::TrainingScore:
      return "training score";
  }
  throw InvalidArgument(
      fmt::format("early stopping: there is no monitor number {}", static_cast<int>(monitor)));
}

std::string epochs(std::int64_t count) {
  return fmt::format("{} epoch{}", count, count == 1 ? "" : "s");
}

}  // namespace

EarlyStopping::EarlyStopping(EarlyStoppingOptions options) : options_(std::move(options)) {
  const auto monitored = nameOf(options_.monitor);
  require(options_.everyEpochs >= 1, "early stopping: everyEpochs must be at least 1, got {}",
          options_.everyEpochs);
  require(options_.patience >= 1, "early stopping: patience must be at least 1, got {}", options_.patience);
  require(std::isfinite(options_.minImprovement) && options_.minImprovement >= 0,
          "early stopping: minImprovement must be finite and not negative, got {}", options_.minImprovement);
  const bool validates = options_.monitor != Monitor::TrainingScore;
  require(!validates || options_.validation, "early stopping: the {} needs validation data, got none",
          monitored);
  require(validates || !options_.validation, "early stopping: the {} does not use the validation data given",
          monitored);
}

void EarlyStopping::onFitStart(const FitEvent&) {
  best_.reset();
  lastImprovement_.reset();
  reason_.clear();
}

void EarlyStopping::onEpochEnd(const EpochEvent& event) {
  const std::int64_t finished = event.epoch + 1;
  if (finished % options_.everyEpochs != 0) return;
  const Result now{finished, measure(event)};
  require(std::isfinite(now.value), "early stopping: after epoch {} the {} is {}{}", finished,
          nameOf(options_.monitor), now.value,
          options_.monitor == Monitor::Loss ? "; it needs predictions that are probabilities" : "");
  if (!best_ || gain(now.value, best_->value) > 0) {
    if (options_.restoreBest) kept_.take(event.trainer.model());
    best_ = now;
  }
  if (!lastImprovement_ || gain(now.value, lastImprovement_->value) > options_.minImprovement)
    lastImprovement_ = now;
  const std::int64_t without = finished - lastImprovement_->epoch;
  if (without >= options_.patience) stop(event, without);
}

void EarlyStopping::onFitEnd(Trainer& trainer) {
  const Kept kept = std::exchange(kept_, {});
  if (!kept.whole) return;
  kept.giveBack(trainer.model());
  writeLine(options_.sink,
            fmt::format("early stopping: the model has its best state, that after epoch {}", best_->epoch));
}

double EarlyStopping::measure(const EpochEvent& event) const {
  if (options_.monitor == Monitor::TrainingScore) return event.score;
  const Evaluation evaluation = event.trainer.evaluate(*options_.validation);
  return options_.monitor == Monitor::Accuracy ? evaluation.accuracy() : evaluation.loss();
}

double EarlyStopping::gain(double value, double before) const {
  return options_.monitor == Monitor::Accuracy ? value - before : before - value;
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

void EarlyStopping::stop(const EpochEvent& event, std::int64_t epochsWithout) {
  const auto least =
      options_.minImprovement > 0 ? fmt::format(" by more than {:.6g}", options_.minImprovement) : "";
  reason_ = fmt::format("the {} has not improved{} for {}; the best was {:.6g} after epoch {}",
                        nameOf(options_.monitor), least, epochs(epochsWithout), best_->value, best_->epoch);
  event.trainer.stopFit();
  writeLine(options_.sink, fmt::format("early stopping after epoch {}: {}", event.epoch + 1, reason_));
}

}  // namespace muster
