#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/listeners/line_sink.h"
#include "muster/core/nn/model.h"

namespace muster {

/// The number that early stopping watches.
enum class Monitor {
  Accuracy,      ///< on the validation data; larger is better
  Loss,          ///< on the validation data, as Evaluation::loss; smaller is better
  TrainingScore  ///< mean over the epoch's training examples; smaller is better
};

struct EarlyStoppingOptions {
  /// Data for Accuracy and Loss; null for TrainingScore. Must outlive the listener.
  DataSetIterator* validation = nullptr;
  Monitor monitor = Monitor::Accuracy;
  std::int64_t everyEpochs = 1;  ///< evaluates after each multiple of this many epochs
  std::int64_t patience = 5;     ///< stops after this many epochs without an improvement
  double minImprovement = 0;     ///< a smaller or equal change does not count as an improvement
  bool restoreBest = false;      ///< gives the model its best state back when `fit()` ends
  LineSink sink = {};
};

/// Ends a training that no longer improves. Evaluates the merged model every N epochs, with all workers, and
/// calls `stopFit()` once `patience` epochs have passed since the last improvement. Each `fit()` is judged by
/// itself: results of an earlier call do not count.
///
/// With `restoreBest`, it copies the model's state to CPU memory whenever the value is the best so far (by
/// however little), and copies the best state back at the end of `fit()`, however that has ended: stopped,
/// after all epochs, or by a failure. Then parameters, statistics, updater, counters, score and the
/// strategy's state are those after the best epoch, and another `fit()` continues from there. If no epoch was
/// evaluated, the model is left as it is. Costs CPU memory for one model, allocated at the first copy and
/// freed at the end. Listeners before this one still see the last state in their `onFitEnd`.
///
/// The validation iterator must not be the training's: a ParallelWrapper already reads the next epoch while
/// listeners evaluate. That is not checked.
///
/// Source: Prechelt 1998, "Early stopping - but when?". Its criterion UP counts successive deteriorations;
/// patience counts epochs since the last improvement.
class EarlyStopping final : public Listener {
 public:
  struct Result {
    std::int64_t epoch = 0;  ///< epochs that the model had finished
    double value = 0;        ///< of the monitor
  };

  /// @throws InvalidArgument for everyEpochs or patience < 1, a minImprovement that is negative or not
  ///         finite, Accuracy or Loss without validation data, or TrainingScore with them.
  explicit EarlyStopping(EarlyStoppingOptions options);

  void onFitStart(const FitEvent& event) override;
  /// @throws InvalidArgument if the value is not finite: a loss, if the predictions are not probabilities.
  void onEpochEnd(const EpochEvent& event) override;
  void onFitEnd(Trainer& trainer) override;

  /// Of the last `fit()`; nothing if no epoch was evaluated.
  const std::optional<Result>& best() const { return best_; }
  /// Why it stopped the last `fit()`, as `the validation accuracy has not improved for 5 epochs; the best was
  /// 0.9834 after epoch 7`. Empty if it did not.
  const std::string& reason() const { return reason_; }

 private:
  double measure(const EpochEvent& event) const;
  /// By how much `value` is better than `before`; negative if it is worse.
  double gain(double value, double before) const;
  void stop(const EpochEvent& event, std::int64_t epochsWithout);

  /// The best state so far.
  struct Kept {
    void take(Model& model);
    void giveBack(Model& model) const;

    std::vector<Tensor> state, copies;  // the model's blocks without gradients; their copies
    std::vector<NamedValues> strategyState;
    double score = 0;
    bool whole = false;  // no copy has failed halfway
  };

  const EarlyStoppingOptions options_;
  std::optional<Result> best_, lastImprovement_;
  std::string reason_;
  Kept kept_;  // empty but in `fit()`
};

}  // namespace muster
