#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/core/listeners/early_stopping.h"
#include "muster/core/listeners/line_sink.h"
#include "muster/core/listeners/performance_report.h"
#include "muster/core/nn/listener.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/run/prepared_run.h"

namespace muster {

namespace detail {
struct SessionParts;
}

/// What a session shows in addition to what its run file asks for.
struct SessionOptions {
  bool progress = true;      ///< lines or a bar, and the tests between epochs
  bool terminal = false;     ///< a row for each worker and the curve of the score in the terminal
  Listeners listeners = {};  ///< yours; they are called after those of the run file
  LineSink sink = {};        ///< gets a sentence if a training ends early; empty: the log
};

/// The scores of a trained run; empty for data that it does not have.
struct RunScores {
  std::optional<AnyEvaluation> validation, test;

  /// The figures of the test examples, or else of the validation examples. @throws InvalidArgument if there
  /// are neither.
  const AnyEvaluation& judged() const {
    require(test || validation,
            "run: nothing was tested: it has no data to test or to validate with, or was stopped");
    return test ? *test : *validation;
  }
};

/// A training that a run file describes, as `muster train` trains it: with its data, workers, averaging rule,
/// listeners, nodes and page; its model is saved, also if it is stopped or fails.
///
///     muster::RunSession session(muster::RunFile::read("run.json"), {myListener});
///     session.train();
///     const auto scores = session.evaluate();
///
/// Not thread-safe. Over several nodes each of them makes the same calls.
class RunSession {
 public:
  explicit RunSession(PreparedRun prepared, const SessionOptions& options = {});
  /// Prepares the run. Refuses a directory with checkpoints of another training.
  /// @param listeners  yours; they are called after those of the run file.
  /// @throws as prepareRun.
  explicit RunSession(RunFile run, Listeners listeners = {});
  ~RunSession();
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

  /// Trains until `training.epochs` are finished or a stop is requested, then saves `training.model`. A
  /// network that diverged is saved beside that file.
  /// @throws TrainingError, or NonFiniteScore for a training that diverged, after what was trained is saved.
  void train(const std::stop_token& stop = {});

  /// Tests with all workers. Nothing is tested on elastic nodes other than the first, or if the training was
  /// stopped before its first step.
  RunScores evaluate();

  const RunFile& run() const { return prepared_.run; }
  const PreparedRun& prepared() const { return prepared_; }
  LoadedData& data() { return prepared_.data; }
  const LoadedData& data() const { return prepared_.data; }
  Network& network() { return *prepared_.network; }
  const Network& network() const { return *prepared_.network; }
  ParallelWrapper& wrapper() { return wrapper_; }
  const ParallelWrapper& wrapper() const { return wrapper_; }
  /// Times and speeds of the training, after `train`.
  const PerformanceReport& performance() const;
  /// The early stopping of the run file: its reason and best value; null if there is none.
  const EarlyStopping* earlyStopping() const;

  bool saved() const { return saved_; }
  bool interrupted() const { return interrupted_; }            ///< on any node
  std::int64_t epochsBefore() const { return epochsBefore_; }  ///< of the file that it resumes
  /// Epochs that the training has finished, also those after the epoch that early stopping has restored.
  std::int64_t epochsFinished() const;
  /// The epoch after which the model had the state that early stopping has restored, from 1; empty if it has
  /// not.
  std::optional<std::int64_t> restoredEpoch() const;
  /// For example "interrupted, with 2 of 5 epochs finished"; "" if it was not.
  std::string interruption() const;
  /// Whether the training has made no step, as when it resumes one that early stopping has ended.
  bool untrained() const { return network().iteration() == begun_; }

 private:
  friend detail::SessionParts;
  void save(bool failed);

  PreparedRun prepared_;
  LineSink sink_;
  std::int64_t begun_, epochsBefore_;  // iterations and epochs of the network before this training
  std::unique_ptr<detail::SessionParts> parts_;
  ParallelWrapper wrapper_;
  bool saved_ = false, interrupted_ = false;
};

}  // namespace muster
