#pragma once

#include <atomic>
#include <chrono>
#include <string_view>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/listener.h"
#include "muster/parallel/training/fit_run.h"
#include "muster/parallel/training/listeners_here.h"
#include "muster/parallel/training/replica_set.h"

namespace muster {

/// What lasts over the parts of a `fit()` that is carried out in several, over nodes that come and go.
struct FitParts {
  const std::atomic<bool>& regroup;           // see Rounds::Options
  std::vector<const Listener*> started = {};  // have heard that it starts
  bool ended = false;                         // they have heard that it ends
};

/// Whether the reason of a failure is another node, so that this one can go on without it.
bool isOfAnotherNode(const std::exception_ptr& cause);

/// What a `fit()` finds in its wrapper.
struct FitSetting {
  Trainer& trainer;  // for listeners
  Model& model;
  ReplicaSet& replicas;
  Strategy& strategy;
  const AnyStrategy& options;                       // the strategy's
  std::span<const std::unique_ptr<Batch>> batches;  // that circulate
  const Listeners& listeners;
  TaskThread& reader;
  std::atomic<bool>& stop;
  Activity& caller;   // what the thread that called `fit()` does
  Activity& reading;  // what the reader does
  std::chrono::nanoseconds patience;
  const Resumption& resumed;
  FitParts* parts = nullptr;  // null: it is in one
};

/// One `fit()` call, once the replicas hold the model's state: tells the listeners, starts workers and
/// reader, coordinates, and fills the user's model. Used by the thread that called `fit()`.
class FitCall {
 public:
  explicit FitCall(const FitSetting& setting);

  /// @param first  the first batch of the first epoch that is not trained, with its place in the stamp, if it
  ///               was read already; else null. An iterator may not
  ///               be able to give it again.
  /// @throws TrainingError for the first failure, when all threads are idle again.
  void run(DataSetIterator& data, std::int64_t epochs, Batch* first);

  /// After `run`: whether it has ended for now, by `FitParts::regroup` of some node.
  bool regrouping() const { return run_.rounds.regrouping(); }
  /// After `run` has ended for now, or failed: the user's model, which holds the last committed merge, gets
  /// the place in the data where other nodes go on from it. @throws Error if it does not hold it.
  void keepPlace(const DataSetIterator& data);

  /// Whether all workers wait at the end of a round, for the listeners.
  bool atRoundEnd() const { return atRoundEnd_; }
  /// In a listener's call: whether the other nodes make it, too.
  bool toldOnAllNodes() const { return told_ != nullptr && isOnAllNodes(*told_); }
  /// At the end of a round: the user's model takes what was merged last, for a listener. What the listener
  /// changes there is not trained: the model takes what was merged last again when the training ends.
  void lendModel();
  /// See Trainer::trainingState. At the end of a round, or after the last one.
  TrainingState trainingState(const DataSetIterator& data);
  /// At the end of a round: each worker calls `task(worker)` on its thread, which must not throw, and this
  /// thread calls `meanwhile`. @return false if the training has failed meanwhile: neither was called.
  template <typename Meanwhile>
  bool runOnWorkers(std::function<void(int)> task, Meanwhile meanwhile) {
    if (run_.failure || !run_.rounds.beginTask(std::move(task))) return false;
    meanwhile();
    run_.rounds.endTask();
    return true;
  }

 private:
  void train(DataSetIterator& data, std::int64_t epochs, Batch* first);
  bool tellStart(const DataSetIterator& data, std::int64_t epochs);
  void tellEnd();
  void endTogether();
  void coordinate(std::int64_t epochs);
  /// @return whether another round follows.
  bool endRound(std::int64_t lastEpoch);
  void fillModel();
  void fillAtEnd();
  Listeners listenersOf(ListenerScope scope) const;

  /// One listener's call.
  template <typename Call>
  void tell(Listener& listener, Call call) {
    setting_.caller.set(Activity::Kind::InListener);
    told_ = &listener;
    call(listener);
    setting_.caller.set(Activity::Kind::WaitingForWorkers);
  }
  template <typename Call>
  void tellAll(Call call) {
    for (const auto& listener : setting_.listeners) tell(*listener, call);
  }
  /// As `tellAll`; the first exception becomes the run's failure. @return false if there was one.
  template <typename Call>
  bool tellAll(std::string_view when, Call call) {
    try {
      tellAll(call);
      return true;
    } catch (...) {
      run_.fail(-1, std::current_exception(), [&] { return fmt::format("a listener failed at {}", when); });
      return false;
    }
  }

  const FitSetting setting_;
  FitRun run_;
  const Listener* told_ = nullptr;  // last
  bool atRoundEnd_ = false;
  bool lent_ = false;              // the user's model, to a listener
  bool filled_ = true;             // with the last committed merge, if there was one
  std::int64_t filledRounds_ = 0;  // rounds that the user's model reflects
};

}  // namespace muster
