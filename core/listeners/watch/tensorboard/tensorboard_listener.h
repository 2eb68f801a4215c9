#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/listeners/watch/hyper_parameter.h"
#include "muster/core/nn/listener.h"

namespace muster {

/// Options of a TensorBoardListener.
struct TensorBoardOptions {
  /// Scores are written at each multiple of this many iterations, as means since the last.
  std::int64_t everyIterations = 1;
  /// Histograms of parameters and updates, in iterations, at the next merge, and of the last round of a
  /// `fit()` whose batches are known; 0: none. Each costs a copy of the merged state and four passes over the
  /// parameters.
  std::int64_t histogramsEvery = 100;
  /// Other processes write into the directory at the same time, as with several nodes. If not, the file
  /// begins with the start of a session, by which TensorBoard with `--load_fast=false` leaves out what
  /// earlier trainings wrote there from this step on.
  bool shared = false;
  /// Its results are written as `test/accuracy` and `test/loss`, or with the name of its data instead of
  /// "test". Put it earlier in the list of listeners.
  std::shared_ptr<const EvaluationListener> evaluation = {};
};

/// Writes a training to an event file for TensorBoard, in a directory of its own for each run: scalars by
/// worker and of the merged model (TrainingReadings lists their names), histograms of each layer's parameters
/// and of what a round changed in them, texts, and a row for the table of all runs. An example, and which
/// directory a resumed training takes: examples/docs/results.md, "TensorBoard".
///
/// Watching changes no bit of the training. If the disk is full, a warning is logged, and the training
/// continues without the file. Each record is written at once, so TensorBoard follows a running training.
///
/// Thread-safe. Link with muster::tensorboard, which needs libprotobuf.
class TensorBoardListener final : public Listener {
 public:
  /// @throws InvalidArgument for a negative number or everyIterations 0; FileError if the file cannot be
  /// made.
  explicit TensorBoardListener(const std::filesystem::path& directory, TensorBoardOptions options = {});
  ~TensorBoardListener() override;

  /// A second listener for the list, for the scores of each worker. On a GPU each step then waits for the
  /// score of the last one.
  std::shared_ptr<Listener> workers();

  /// @param markdown  UTF-8.
  void text(std::string_view tag, std::string_view markdown);
  void scalar(std::string_view tag, std::int64_t step, double value);
  /// The run's options, for the table of all runs. Call it once.
  /// @param results  names that `result` will be called with; `score` is always among them.
  /// @param group  runs of the same group are shown as one: seeds of an arm.
  void hyperParameters(const std::vector<HyperParameter>& parameters,
                       const std::vector<std::string>& results = {}, std::string_view group = {});
  /// A result of the training, written as the scalar `result/NAME`.
  void result(std::string_view name, double value);

  const std::filesystem::path& file() const;

  bool readsDivergence() const override { return true; }
  void onFitStart(const FitEvent& event) override;
  void onEpochStart(const EpochEvent& event) override;
  void onMerge(const MergeEvent& event) override;
  /// Writes the result `score` of the epoch.
  void onEpochEnd(const EpochEvent& event) override;
  void onFitEnd(Trainer& trainer) override;

 private:
  struct State;
  class Workers;
  std::shared_ptr<State> state_;
};

}  // namespace muster
