#include "muster/core/listeners/watch/tensorboard/tensorboard_listener.h"

#include <fmt/format.h>

#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"
#include "muster/core/listeners/every.h"
#include "muster/core/listeners/watch/layer_histograms.h"
#include "muster/core/listeners/watch/round_forecast.h"
#include "muster/core/listeners/watch/tensorboard/event_file.h"
#include "muster/core/listeners/watch/tensorboard/event_messages.h"
#include "muster/core/listeners/watch/training_readings.h"

namespace muster {

/// Shared by the two listeners; workers may call at any time.
struct TensorBoardListener::State {
  State(const std::filesystem::path& directory, const TensorBoardOptions& options)
      : histograms(options.histogramsEvery > 0),
        shared(options.shared),
        histogramsDue(options.histogramsEvery),
        file(directory),
        readings({.everyIterations = options.everyIterations, .evaluation = options.evaluation},
                 [this](std::string_view name, std::int64_t step, double value)
                     MUSTER_REQUIRES(mutex) { scalar(name, step, value); }) {
    file.append(events::version());
  }

  void scalar(std::string_view name, std::int64_t step, double value) MUSTER_REQUIRES(mutex) {
    iteration = step;
    file.append(events::scalar(name, step, value));
  }

  void writeHistograms(Model& model, std::int64_t step) MUSTER_REQUIRES(mutex) {
    for (const auto& layer : layers.after(model)) {
      file.append(events::histogram("parameters/" + layer.name, step, layer.parameters));
      file.append(events::histogram("updates/" + layer.name, step, layer.update));
      scalar("norm/" + layer.name, step, layer.parameters.norm());
      scalar("update to parameter ratio/" + layer.name, step, layer.ratio());
    }
  }

  const bool histograms;
  const bool shared;
  Mutex mutex;
  Every histogramsDue MUSTER_GUARDED_BY(mutex);
  EventFile file MUSTER_GUARDED_BY(mutex);
  TrainingReadings readings MUSTER_GUARDED_BY(mutex);
  LayerHistograms layers MUSTER_GUARDED_BY(mutex);
  RoundForecast forecast MUSTER_GUARDED_BY(mutex);
  std::int64_t iteration MUSTER_GUARDED_BY(mutex) = 0;  // of the last scalar
  std::int64_t epochs MUSTER_GUARDED_BY(mutex) = 0;     // remaining epochs of this `fit`
  bool begun MUSTER_GUARDED_BY(mutex) = false;          // a fit has begun
};

/// The listener of worker scope.
class TensorBoardListener::Workers final : public Listener {
 public:
  explicit Workers(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ListenerScope scope() const override { return ListenerScope::Worker; }
  void onIteration(const IterationEvent& event) override {
    const Lock lock(state_->mutex);
    state_->readings.iteration(event);
  }

 private:
  std::shared_ptr<State> state_;
};

TensorBoardListener::TensorBoardListener(const std::filesystem::path& directory, TensorBoardOptions options) {
  require(options.everyIterations >= 1, "TensorBoard: everyIterations must be at least 1, got {}",
          options.everyIterations);
  require(options.histogramsEvery >= 0, "TensorBoard: histogramsEvery cannot be negative, got {}",
          options.histogramsEvery);
  state_ = std::make_shared<State>(directory, options);
}

TensorBoardListener::~TensorBoardListener() = default;

std::shared_ptr<Listener> TensorBoardListener::workers() {
  return std::make_shared<Workers>(state_);
}

void TensorBoardListener::text(std::string_view tag, std::string_view markdown) {
  const Lock lock(state_->mutex);
  state_->file.append(events::text(tag, markdown));
}

void TensorBoardListener::scalar(std::string_view tag, std::int64_t step, double value) {
  const Lock lock(state_->mutex);
  state_->scalar(tag, step, value);
}

void TensorBoardListener::hyperParameters(const std::vector<HyperParameter>& parameters,
                                          const std::vector<std::string>& results, std::string_view group) {
  std::vector<std::string> metrics = {"result/score"};
  for (const auto& name : results) metrics.push_back("result/" + name);
  const Lock lock(state_->mutex);
  state_->file.append(events::experiment(parameters, metrics));
  state_->file.append(events::runStart(parameters, group));
}

void TensorBoardListener::result(std::string_view name, double value) {
  const Lock lock(state_->mutex);
  state_->scalar(fmt::format("result/{}", name), state_->iteration, value);
}

const std::filesystem::path& TensorBoardListener::file() const {
  const Lock lock(state_->mutex);
  return state_->file.path();
}

void TensorBoardListener::onFitStart(const FitEvent& event) {
  const Lock lock(state_->mutex);
  state_->epochs = event.epochs;
  state_->readings.fitStart(event);
  state_->forecast.fitStart(event);
  Model& model = event.trainer.model();
  const bool first = !std::exchange(state_->begun, true);
  if (first && !state_->shared) state_->file.append(events::restart(model.iteration() + 1));
  state_->histogramsDue.start(model.iteration());
  if (state_->histograms) state_->layers.before(model);
}

void TensorBoardListener::onEpochStart(const EpochEvent&) {
  const Lock lock(state_->mutex);
  state_->readings.epochStart();
}

void TensorBoardListener::onMerge(const MergeEvent& event) {
  const Lock lock(state_->mutex);
  state_->readings.merge(event);
  const bool last = state_->histograms && state_->forecast.after(event).endsFit;
  const bool due = state_->histogramsDue.passed(event.iteration) || last;
  if (!due && !state_->layers.begun()) return;
  Model& model = event.trainer.model();
  state_->writeHistograms(model, event.iteration);
  // An update is measured from the round's first parameters. Keep the current ones for the next round.
  if (due) state_->layers.before(model);
}

void TensorBoardListener::onEpochEnd(const EpochEvent& event) {
  const Lock lock(state_->mutex);
  --state_->epochs;
  state_->readings.epochEnd(event);
  state_->scalar("result/score", event.iteration, event.score);
}

void TensorBoardListener::onFitEnd(Trainer& trainer) {
  const Lock lock(state_->mutex);
  state_->readings.fitEnd(trainer);
  state_->file.append(events::runEnd(state_->epochs == 0));
}

}  // namespace muster
