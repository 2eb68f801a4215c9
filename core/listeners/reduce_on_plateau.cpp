#include "muster/core/listeners/reduce_on_plateau.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"

namespace muster {
namespace {

constexpr std::string_view kCaller = "reduce on plateau";

/// Two listeners with equal names keep the same numbers.
std::string nameOf(const Monitored& monitored, const PlateauOptions& options) {
  return fmt::format("{} ({}, {}, factor {}, above {})", kCaller, monitored.name(),
                     nameOf(monitored.better()), options.factor, options.minImprovement);
}

}  // namespace

ReduceOnPlateau::ReduceOnPlateau(PlateauOptions options)
    : options_(std::move(options)),
      monitored_{.validation = options_.validation,
                 .monitor = options_.monitor,
                 .mode = options_.mode,
                 .measure = options_.measure},
      name_(nameOf(monitored_.validate(kCaller), options_)) {
  const auto& o = options_;
  require(o.factor > 0 && o.factor < 1, "{}: factor must be between 0 and 1, got {}", kCaller, o.factor);
  require(o.patience >= 1, "{}: patience must be at least 1 epoch, got {}", kCaller, o.patience);
  require(std::isfinite(o.minImprovement) && o.minImprovement >= 0,
          "{}: minImprovement must be finite and not negative, got {}", kCaller, o.minImprovement);
  require(o.minFactor >= 0 && o.minFactor < 1, "{}: minFactor must be from 0 to below 1, got {}", kCaller,
          o.minFactor);
}

std::string ReduceOnPlateau::describe() const {
  return fmt::format("ReduceOnPlateau ({}, patience={}, minFactor={})", name_, options_.patience,
                     options_.minFactor);
}

void ReduceOnPlateau::onFitStart(const FitEvent& event) {
  Model& model = event.trainer.model();
  monitored_.requireFits(kCaller, model);
  if (!model.trainingState().empty()) {
    now_ = {};
    namingResumedFile(model, [&] { resume(model); });
  }
  model.setLearningRateFactor(now_.factor);
  remember(model);
}

void ReduceOnPlateau::onEpochEnd(const EpochEvent& event) {
  const double value = monitored_.value(event);
  if (std::isnan(value) && monitored_.monitor == Monitor::R2)
    throw InvalidArgument(fmt::format(
        "{}: the validation R2 is undefined, because all numbers to predict are equal; monitor the loss",
        kCaller));
  Model& model = event.trainer.model();
  // A value that is not a number is no improvement.
  if (std::isfinite(value) &&
      (now_.any == 0 || monitored_.gain(value, now_.best) > options_.minImprovement)) {
    now_.best = value;
    now_.any = 1;
    now_.without = 0;
  } else if (++now_.without >= static_cast<double>(options_.patience)) {
    const double lower = std::max(now_.factor * options_.factor, options_.minFactor);
    if (lower < now_.factor && onFirstNode())
      writeLine(
          options_.sink,
          fmt::format("epoch {}: the {} has not improved for {}; the learning rate is multiplied by {:.6g}",
                      event.epoch + 1, monitored_.name(), plural(options_.patience, "epoch"), lower));
    now_.factor = lower;
    now_.without = 0;
    model.setLearningRateFactor(now_.factor);
  }
  remember(model);
}

void ReduceOnPlateau::onFitEnd(Trainer& trainer) {
  trainer.model().setLearningRateFactor(1);
}

void ReduceOnPlateau::resume(Model& model) {
  const Tensor* const saved = findValues(model.listenerState(), name_);
  if (saved == nullptr)
    return logInfo("{}: the checkpoint has no state for this listener, so its counts start here", name_);
  const auto field = fmt::format("training state: the listener's \"{}\"", name_);
  requireSaved(saved->dtype() == DType::Float64 && saved->shape() == Shape{4},
               "{} is {}, which is impossible", field, saved->toString());
  const Tensor here = saved->device().isCpu() ? *saved : copyTo(*saved, Device::cpu());
  const auto numbers = here.span<double>();
  const State read{numbers[0], numbers[1], numbers[2], numbers[3]};
  requireSaved(read.factor >= 0 && read.factor <= 1 && std::isfinite(read.best) && read.without >= 0 &&
                   read.without <= 1e15 && (read.any == 0 || read.any == 1),
               "{} has numbers that are impossible", field);
  now_ = read;
}

void ReduceOnPlateau::remember(Model& model) const {
  const std::array numbers{now_.factor, now_.best, now_.without, now_.any};
  putValues(model.listenerState(), name_, numbersAs(std::span<const double>(numbers)));
}

}  // namespace muster
