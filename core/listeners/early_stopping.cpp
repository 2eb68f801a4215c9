#include "muster/core/listeners/early_stopping.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/output_path.h"

namespace muster {
namespace {

/// The numbers in Model::listenerState. Epochs are 0 before the first evaluation.
enum Number { BestEpoch, BestValue, BestScore, ImprovedEpoch, ImprovedValue, Seconds, kNumbers };

/// Prefixes of the best state in Model::listenerState, after bestName_.
constexpr std::string_view kBlock = "block ", kStrategy = "strategy ";

/// Note in bestFile, as in `validation accuracy, max: 0.98`.
const std::string kNote = "earlyStopping.value";

const Monitored& valid(const Monitored& monitored) {
  monitored.validate("early stopping");
  return monitored;
}

/// Two listeners with equal names keep the same numbers.
std::string nameOf(const Monitored& monitored, const EarlyStoppingOptions& options) {
  return fmt::format("early stopping ({}, {}, every {}, above {})", monitored.name(),
                     nameOf(monitored.better()), options.everyEpochs, options.minImprovement);
}

std::string notePrefix(const Monitored& monitored) {
  return fmt::format("{}, {}: ", monitored.name(), nameOf(monitored.better()));
}

/// Does not allocate if there are values of this name.
void put(std::vector<NamedValues>& all, std::string_view name, const Tensor& values) {
  const auto found = std::ranges::find(all, name, &NamedValues::name);
  if (found != all.end())
    found->values = values;
  else
    all.push_back({std::string(name), values});
}

void eraseAll(std::vector<NamedValues>& all, const std::string& prefix) {
  std::erase_if(all, [&](const NamedValues& one) { return one.name.starts_with(prefix); });
}

/// Whether the training continues at an epoch's beginning.
bool beginsEpoch(const TrainingState& state) {
  const auto position = positionIn(state);
  return position && position->nextBatch == 0 && position->trainedLater.empty();
}

/// Listener state may be on the model's device.
Tensor onCpu(const Tensor& values) {
  return values.device().isCpu() ? values : copyTo(values, Device::cpu());
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
      name_(nameOf(valid(monitored_), options_)),
      bestName_(name_ + ": ") {
  const auto& o = options_;
  require(o.everyEpochs >= 1, "early stopping: everyEpochs must be at least 1, got {}", o.everyEpochs);
  require(o.patience >= 0, "early stopping: patience cannot be negative, got {}", o.patience);
  require(std::isfinite(o.minImprovement) && o.minImprovement >= 0,
          "early stopping: minImprovement must be finite and not negative, got {}", o.minImprovement);
  require(o.maxTime.count() >= 0, "early stopping: maxTime cannot be negative, got {} ns", o.maxTime.count());
  require(o.patience > 0 || o.maxTime.count() > 0,
          "early stopping: patience and maxTime are both 0, so it would only stop at a NaN");
  require(!o.notes.contains(kNote), "early stopping: the note {} is reserved", kNote);
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
  fileValue_.reset();
  kept_ = {};
  numbers_ = Tensor::zeros({kNumbers}, DType::Float64);
  Model& model = event.trainer.model();
  monitored_.requireFits("early stopping", model);
  const bool resumed = !model.trainingState().empty();
  if (resumed) namingResumedFile(model, [&] { resume(model); });
  if (!kept_.whole) eraseAll(model.listenerState(), bestName_);
  remember(model);
  if (!options_.bestFile.empty() && onFirstNode()) {
    require(dynamic_cast<Network*>(&model) != nullptr,
            "early stopping: bestFile needs a model that is a Network");
    checkOutputFile(options_.bestFile);
    if (resumed) readBestFile();
  }
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
        fmt::format(
            "the {} is {}{}", monitored_.name(), now.value,
            options_.monitor == Monitor::Loss ? ", perhaps because predictions are not probabilities" : ""));
  Model& model = event.trainer.model();
  const bool better = !best_ || monitored_.gain(now.value, best_->value) > 0;
  if (better) {
    if (options_.restoreBest && kept_.take(model)) eraseAll(model.listenerState(), bestName_);
    best_ = now;
  }
  if (!lastImprovement_ || monitored_.gain(now.value, lastImprovement_->value) > options_.minImprovement)
    lastImprovement_ = now;
  remember(model);
  if (better && !options_.bestFile.empty() && onFirstNode()) writeBest(event.trainer);
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
  const Kept kept = std::exchange(kept_, {});
  ModelWriter writer = std::exchange(writer_, {});
  if (kept.whole) {
    Model& model = trainer.model();
    kept.giveBack(model);
    model.trainingState().clear();  // it is not of this state
    model.setLoadedFrom({});
    eraseAll(model.listenerState(), bestName_);
    if (onFirstNode())
      writeLine(options_.sink,
                fmt::format("early stopping: the model has its best state again, the one after epoch {}",
                            best_->epoch));
    if (!options_.bestFile.empty() && onFirstNode()) {
      // After a resumption, if the file could not be written when the state was new.
      if (lacksBest() && accepts(trainer))
        writer.write(dynamic_cast<Network&>(model), {}, notesOfBest(), options_.bestFile);
    }
  }
  writer.finish();
}

void EarlyStopping::resume(Model& model) {
  const Tensor* const saved = findValues(model.listenerState(), name_);
  if (saved == nullptr)
    return logInfo("{}: the checkpoint has no state for this listener, so its counts start here", name_);
  const auto field = fmt::format("training state: the listener's \"{}\"", name_);
  requireSaved(saved->dtype() == DType::Float64 && saved->shape() == Shape{kNumbers},
               "{} is {}, which is impossible", field, saved->toString());
  const Tensor here = onCpu(*saved);
  const auto numbers = here.span<double>();
  const auto mostEpochs = static_cast<double>(model.epoch());
  const auto requirePossible = [&](bool possible, std::string_view what, Number number) {
    requireSaved(possible, "{} has {} {}, which is impossible", field, what, numbers[number]);  // also NaN
  };
  const auto isEpoch = [&](Number number) { return numbers[number] >= 0 && numbers[number] <= mostEpochs; };
  requirePossible(isEpoch(BestEpoch), "the best epoch", BestEpoch);
  requirePossible(isEpoch(ImprovedEpoch) && (numbers[BestEpoch] < 1) == (numbers[ImprovedEpoch] < 1),
                  "the last improvement in epoch", ImprovedEpoch);
  requirePossible(std::isfinite(numbers[BestValue]), "the best value", BestValue);
  requirePossible(std::isfinite(numbers[BestScore]), "the best score", BestScore);
  requirePossible(std::isfinite(numbers[ImprovedValue]), "the last improvement to", ImprovedValue);
  requirePossible(numbers[Seconds] >= 0 && numbers[Seconds] <= 1e9, "seconds", Seconds);
  start_ -= std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(numbers[Seconds]));
  if (numbers[BestEpoch] < 1) return;
  best_ = Result{static_cast<std::int64_t>(numbers[BestEpoch]), numbers[BestValue]};
  lastImprovement_ = Result{static_cast<std::int64_t>(numbers[ImprovedEpoch]), numbers[ImprovedValue]};
  kept_.score = numbers[BestScore];
  if (options_.restoreBest) resumeKept(model);
}

void EarlyStopping::resumeKept(Model& model) {
  const auto& all = model.listenerState();
  for (const auto* block : model.state()) {
    if (block->kind == BlockKind::Gradients) continue;
    const Tensor* const saved = findValues(all, fmt::format("{}{}{}", bestName_, kBlock, block->name));
    if (saved == nullptr || saved->shape() != block->values.shape() ||
        saved->dtype() != block->values.dtype()) {
      kept_ = {};
      eraseAll(model.listenerState(), bestName_);
      // The best file holds no copy of itself.
      if (best_->epoch == model.epoch() && beginsEpoch(model.trainingState()))
        kept_.take(model);
      else
        logWarning(
            "{}: the checkpoint does not hold the best state, the one after epoch {}, so it cannot be "
            "restored",
            name_, best_->epoch);
      return;
    }
    kept_.state.push_back(block->values);
    kept_.copies.push_back({block->name, onCpu(*saved)});
  }
  for (const auto& [name, values] : all)
    if (const std::string prefix = fmt::format("{}{}", bestName_, kStrategy); name.starts_with(prefix))
      kept_.strategyState.push_back({name.substr(prefix.size()), onCpu(values)});
  kept_.whole = true;
}

void EarlyStopping::remember(Model& model) {
  const auto numbers = numbers_.span<double>();
  if (best_) {
    numbers[BestEpoch] = static_cast<double>(best_->epoch);
    numbers[BestValue] = best_->value;
    numbers[BestScore] = kept_.score;
    numbers[ImprovedEpoch] = static_cast<double>(lastImprovement_->epoch);
    numbers[ImprovedValue] = lastImprovement_->value;
  }
  rememberTime();
  auto& all = model.listenerState();
  put(all, name_, numbers_);
  // The copies' memory is usually the same as before, so their names are not built again.
  const auto isThere = [&](const NamedValues& kept) {
    return std::ranges::any_of(all, [&](const NamedValues& one) {
      return one.values.raw() == kept.values.raw() && one.name.starts_with(bestName_);
    });
  };
  if (!kept_.whole ||
      (std::ranges::all_of(kept_.copies, isThere) && std::ranges::all_of(kept_.strategyState, isThere)))
    return;
  for (const auto& [name, values] : kept_.copies)
    put(all, fmt::format("{}{}{}", bestName_, kBlock, name), values);
  for (const auto& [name, values] : kept_.strategyState)
    put(all, fmt::format("{}{}{}", bestName_, kStrategy, name), values);
}

/// The time makes files differ from run to run, so it is kept only where it counts.
void EarlyStopping::rememberTime() {
  if (options_.maxTime.count() == 0 || !onFirstNode()) return;
  numbers_.span<double>()[Seconds] = std::chrono::duration<double>(now() - start_).count();
}

void EarlyStopping::readBestFile() {
  if (!std::filesystem::exists(options_.bestFile)) return;
  const ModelNotes notes = readModelNotes(options_.bestFile);
  const auto note = notes.find(kNote);
  const std::string prefix = notePrefix(monitored_);
  if (note == notes.end() || !note->second.starts_with(prefix)) return;  // it is not of this training
  const std::string text = note->second.substr(prefix.size());
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && rest == end && std::isfinite(value)) fileValue_ = value;
}

bool EarlyStopping::lacksBest() const {
  return !fileValue_ || monitored_.gain(best_->value, *fileValue_) > 0;
}

ModelNotes EarlyStopping::notesOfBest() const {
  ModelNotes notes = options_.notes;
  notes[kNote] = fmt::format("{}{}", notePrefix(monitored_), best_->value);
  return notes;
}

bool EarlyStopping::accepts(Trainer& trainer) const {
  return !options_.acceptBest || options_.acceptBest(trainer);
}

void EarlyStopping::writeBest(Trainer& trainer) {
  if (!lacksBest() || !accepts(trainer)) return;
  Model& model = trainer.model();
  auto all = model.listenerState();
  eraseAll(model.listenerState(), bestName_);  // the file is the best state
  writer_.write(dynamic_cast<Network&>(model), trainer.trainingState(), notesOfBest(), options_.bestFile);
  model.listenerState() = std::move(all);
  fileValue_ = best_->value;
}

bool EarlyStopping::Kept::take(Model& model) {
  whole = false;
  model.context().synchronize();
  bool moved = copies.empty();
  if (moved) {
    for (const auto* block : model.state()) {
      if (block->kind == BlockKind::Gradients) continue;
      state.push_back(block->values);
      copies.push_back({block->name, {}});
    }
    const auto copied = copyTo(state, Device::cpu());
    for (std::size_t b = 0; b < state.size(); ++b) copies[b].values = copied[b];
  } else {
    for (std::size_t b = 0; b < state.size(); ++b) copy(state[b], copies[b].values);
  }
  const auto& last = model.strategyState();
  moved = moved || strategyState.size() != last.size();
  strategyState.resize(last.size());
  for (std::size_t i = 0; i < last.size(); ++i) {
    auto& [name, values] = strategyState[i];
    const void* const before = values.defined() ? values.raw() : nullptr;
    moved = moved || name != last[i].name;
    name = last[i].name;
    values.resize(last[i].values.shape(), last[i].values.dtype());
    moved = moved || values.raw() != before;
    copy(last[i].values, values);
  }
  score = model.score();
  whole = true;
  return moved;
}

void EarlyStopping::Kept::giveBack(Model& model) const {
  model.context().synchronize();
  for (std::size_t b = 0; b < state.size(); ++b) {
    Tensor target = state[b];
    copy(copies[b].values, target);
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
