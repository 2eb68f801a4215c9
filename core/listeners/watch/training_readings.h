#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/nn/listener.h"

namespace muster {

/// Options of TrainingReadings.
struct ReadingOptions {
  /// Scores of workers and merges are read at each multiple of this many iterations and at the end, as means
  /// since the last reading.
  std::int64_t everyIterations = 1;
  /// Times, speed and memory are read at most once in this much training time, at the ends of epochs once in
  /// a tenth of it, and at the end. Training time excludes what listeners do between epochs, such as an
  /// evaluation.
  std::chrono::nanoseconds everyTime = std::chrono::milliseconds(500);
  /// Scores of workers and merges are also read at most once in this time, so that readings do not slow short
  /// steps down.
  std::chrono::nanoseconds scoresEvery{0};
  /// Whether to read also the positions on other axes than iterations (at/...) and the marks (mark/...).
  bool places = false;
  /// The results of this listener become readings. It must come earlier in the list of listeners.
  std::shared_ptr<const EvaluationListener> evaluation = {};
  /// The clock; empty: the steady clock.
  std::function<std::chrono::steady_clock::time_point()> now = {};
};

/// Turns the events of listeners into named numbers, for whatever shows them:
///
///     score/worker 0                 of a worker's steps
///     score/merged, score/epoch      of all workers: since the last reading; of a finished epoch
///     merge/divergence               distance of the replicas from their mean before a merge, if measured
///     merge/milliseconds, merge/bytes, merge/NAME    of a merge; NAME: its strategy's values
///     training/learning rate         of a Network's updater, at the next iteration
///     training/samples per second    of all workers, also those of other nodes, by the wall clock
///     time/all/computing             share in [0, 1] of the time since the last reading; also "waiting for
///                                    data", "synchronising" (waiting at the ends of rounds), "merging", and
///                                    time/worker 0/...
///     memory/resident bytes          of this process
///     test/accuracy, test/loss       of an EvaluationListener; test/r2 of a regression. Instead of "test"
///     the
///                                    name of its data (EvaluationOptions::data), as in validation/accuracy
///     at/samples, at/seconds, at/bytes    trained so far by all workers; of training; sent by a worker
///     mark/resynchronisation         1 at each iteration at which shared gradients resynchronised
///
/// Used by one thread at a time.
class TrainingReadings {
 public:
  /// Receives a reading. @param step  iterations finished.
  using Sink = std::function<void(std::string_view name, std::int64_t step, double value)>;

  /// @throws InvalidArgument for everyIterations < 1 or a negative time.
  TrainingReadings(ReadingOptions options, Sink sink);

  /// How far a training has come on the axes at/...
  struct Places {
    std::int64_t samples = 0;
    std::chrono::nanoseconds trained{0};
    std::int64_t bytes = 0;
  };

  void fitStart(const FitEvent& event);
  /// The training continues from here, if another process began it. After `fitStart`.
  void resume(std::int64_t step, const Places& places);
  void epochStart();
  void iteration(const IterationEvent& event);
  void merge(const MergeEvent& event);
  void epochEnd(const EpochEvent& event);
  /// Reads the last steps, also if nothing is due.
  void fitEnd(Trainer& trainer);

 private:
  using Clock = std::chrono::steady_clock;
  /// A mean over examples since the last reading.
  struct Mean {
    double sum = 0;
    std::int64_t examples = 0;
    std::int64_t last = 0;                           // iteration of a worker's last step
    std::int64_t read = 0;                           // at this iteration
    std::chrono::steady_clock::time_point readAt{};  // likewise
    void add(double score, std::int64_t count);
    double take(std::int64_t iteration, std::chrono::steady_clock::time_point at);
  };

  Clock::time_point now() const { return options_.now ? options_.now() : Clock::now(); }
  bool due(const Mean& mean, std::int64_t iteration, Clock::time_point at) const;
  /// The time since the last call or the start of an epoch was training.
  void countTime();
  void readTimes(Trainer& trainer, std::int64_t step);
  void readShares(const std::string& prefix, const WorkerTimes& times, std::int64_t step);
  void readTests();
  void readPlaces(std::int64_t step);

  ReadingOptions options_;
  Sink sink_;
  Model* model_ = nullptr;
  std::vector<Mean> workers_;                                   // [worker]
  std::vector<std::string> workerNames_;                        // [worker] "score/worker 0"
  std::map<std::string, std::string, std::less<>> valueNames_;  // [name of a merge's value] "merge/name"
  Mean merged_;
  std::int64_t lastMerge_ = 0;  // its iteration
  std::optional<Clock::time_point> divergenceAt_;
  Clock::time_point mark_;               // where the time that is not counted yet begins
  std::chrono::nanoseconds trained_{0};  // since times were read
  bool timesRead_ = false;               // in this `fit()`
  Places places_;                        // since the beginning
  std::vector<WorkerTimes> timesBefore_;
  std::int64_t samplesRead_ = 0;  // of places_, when times were read
  std::size_t testsRead_ = 0;
};

}  // namespace muster
