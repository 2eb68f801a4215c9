#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string_view>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/listener.h"
#include "muster/parallel/training/fit_run.h"
#include "muster/parallel/training/listeners_here.h"
#include "muster/parallel/training/replica_set.h"

namespace muster {

/// State that a `fit()` over elastic nodes keeps from one of its parts (generations) to the next.
struct FitParts {
  const std::atomic<bool>& regroup;           // see Rounds::Options
  std::vector<const Listener*> started = {};  // whose onFitStart was called
  bool ended = false;                         // whether onFitEnd was called
  /// The first batch of epoch 0, read to prepare the model; until it is trained, as an iterator may not be
  /// able to give it again.
  std::optional<Batch> first = {};
};

/// Whether another node caused a failure, so that this node can continue without it.
bool isOfAnotherNode(const std::exception_ptr& cause);

/// The parts of the wrapper that a `fit()` uses.
struct FitSetting {
  Trainer& trainer;  // for listeners
  Model& model;
  ReplicaSet& replicas;
  Strategy& strategy;
  const AnyStrategy& options;                       // of the strategy
  std::span<const std::unique_ptr<Batch>> batches;  // circulate between reader and workers
  const Listeners& listeners;
  TaskThread& reader;
  std::atomic<bool>& stop;
  Activity& caller;                 // what the thread that called `fit()` does
  Activity& reading;                // what the reader does
  const NumberedBatches* numbered;  // which workers read themselves; null: the reader does
  std::chrono::nanoseconds patience;
  const Resumption& resumed;
  FitParts* parts = nullptr;  // null: the fit has one part
};

/// One `fit()` call, once the replicas hold the model's state: calls the listeners, starts workers and
/// reader, coordinates, and fills the user's model. Used by the thread that called `fit()`.
class FitCall {
 public:
  explicit FitCall(const FitSetting& setting);

  /// @param first  the first untrained batch of the first epoch, with its position in the stamp, if it was
  ///               read already; else null. An iterator may not be able to give it again.
  /// @throws TrainingError for the first failure, when all threads are idle again.
  void run(DataSetIterator& data, std::int64_t epochs, Batch* first);

  /// After `run`: whether it has paused because some node set `FitParts::regroup`.
  bool regrouping() const { return run_.rounds.ledger().verdict == Verdict::Pause; }
  /// Call it after `run` has paused or failed, when the user's model holds the last committed merge. Adds the
  /// position in the data at which other nodes continue. @throws Error if the model lacks that merge.
  void keepPlace(const DataSetIterator& data);

  /// Whether all workers wait at the end of a round, for the listeners.
  bool atRoundEnd() const { return atRoundEnd_; }
  /// In a listener's call: whether the other nodes make the same call.
  bool calledOnAllNodes() const { return called_ != nullptr && isOnAllNodes(*called_); }
  /// At the end of a round: fills the user's model with the last merge, for a listener. Changes by the
  /// listener are not trained: the model is filled with the last merge again when the training ends.
  void lendModel();
  /// See Trainer::copyReplica. Call it at the end of a round, or after the last round.
  void copyReplica(int worker, Model& into);
  /// See Trainer::trainingState. Call it at the end of a round, or after the last round.
  TrainingState trainingState(const DataSetIterator& data);
  /// At the end of a round; see Rounds::visit. @return false if the training has failed meanwhile.
  template <typename Meanwhile>
  bool visit(const std::function<void(int)>& task, Meanwhile meanwhile) {
    return !run_.failure && run_.rounds.visit(task, meanwhile);
  }

 private:
  void train(DataSetIterator& data, std::int64_t epochs, Batch* first);
  bool begin(std::int64_t epochs);
  bool tellStart(const DataSetIterator& data, std::int64_t epochs);
  void tellEnd();
  void endTogether();
  void coordinate();
  void endRound();
  void tellEndAndAnswer();
  template <typename When>
  void answerNodes(When when);
  template <typename When>
  void failOfNodes(std::exception_ptr cause, When when);
  template <typename When>
  void failInListener(When when);
  std::vector<std::int64_t> examples() const;
  void tellLacking(std::string_view why);
  void findLostMerge();
  void fillModel();
  void fillAtEnd();
  Listeners listenersOf(ListenerScope scope) const;

  /// One listener's call.
  template <typename Call>
  void notify(Listener& listener, Call call) {
    setting_.caller.set(Activity::Kind::InListener);
    called_ = &listener;
    call(listener);
    setting_.caller.set(Activity::Kind::WaitingForWorkers);
  }
  template <typename Call>
  void notifyAll(Call call) {
    for (const auto& listener : setting_.listeners) notify(*listener, call);
  }
  /// As `notifyAll`; the first exception becomes the run's failure. @return false if there was one.
  template <typename Call>
  bool notifyAll(std::string_view when, Call call) {
    try {
      notifyAll(call);
      return true;
    } catch (...) {
      run_.fail(-1, std::current_exception(), [&] { return fmt::format("a listener failed at {}", when); });
      return false;
    }
  }

  const FitSetting setting_;
  FitRun run_;
  const Listener* called_ = nullptr;  // the listener called last
  bool atRoundEnd_ = false;
  bool othersAnswer_ = false;  // whether the other nodes answer if this one collects replicas
  bool lent_ = false;          // whether a listener was lent the user's model
  /// The rounds of this run whose result the user's model holds; nothing: it must be filled, or cannot be.
  std::optional<std::int64_t> held_ = 0;
  bool toldLacking_ = false;  // whether tellLacking has warned
};

}  // namespace muster
