#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "muster/core/nn/training_state.h"
#include "muster/parallel/training/fit_run.h"
#include "muster/parallel/training/replica_set.h"

namespace muster {

/// The user's model during a fit: filled with the last committed merge when a listener asks, and when the
/// training ends or fails; and the state of the training that goes with it. Used by the thread that called
/// `fit()`.
class UsersModel {
 public:
  /// While workers train; at the end of a round, where they wait for the listeners; at the end of the run, in
  /// the listeners' calls. In the last two the other nodes answer if this one collects replicas.
  enum class Moment { Training, RoundEnd, RunEnd };

  UsersModel(const FitSetting& setting, FitRun& run) : setting_(setting), run_(run) {}

  Moment moment() const { return moment_; }
  void setMoment(Moment moment) { moment_ = moment; }
  /// At the end of a round: fills the model with the last merge, for a listener. Changes by the listener are
  /// not trained: the model is filled with the last merge again when the training ends.
  void lend();
  /// When the training has ended or failed. A failure becomes the run's.
  void fillAtEnd();
  /// Call it after the run has paused or failed, when the model holds the last committed merge. Adds the
  /// position in the data at which other nodes continue. @throws Error if the model lacks that merge.
  void keepPlace();
  /// See Trainer::copyReplica. Call it at the end of a round, or after the last round.
  void copyReplica(int worker, Model& into);
  /// See Trainer::trainingState. Call it at the end of a round, or after the last round.
  TrainingState trainingState();

 private:
  void fill();
  void findLostMerge();
  TrainingState positionNow();
  TrainingState lack(std::string_view why);

  const FitSetting& setting_;
  FitRun& run_;
  Moment moment_ = Moment::Training;
  bool lent_ = false;  // whether a listener was lent the model
  /// The rounds of this run whose result the model holds; nothing: it must be filled, or cannot be.
  std::optional<std::int64_t> held_ = 0;
  bool warnedOfLack_ = false;  // by `lack`
};

}  // namespace muster
