#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"
#include "muster/core/base/owner_process.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/training/fit_call.h"
#include "muster/parallel/wrapper_session.h"

namespace muster {

/// The implementation of ParallelWrapper. What nodes that join or leave change is its WrapperSession.
struct ParallelWrapper::Impl final : Trainer {
  Impl(Model& model, ParallelOptions options);

  // Trainer
  Model& model() override;
  int workers() const override { return options_.workers; }
  void stopFit() override { stop_ = true; }
  std::vector<WorkerTimes> workerTimes() const override;
  AnyEvaluation evaluateTask(DataSetIterator& data, std::optional<Task> task) override;
  TrainingState trainingState() override;
  void copyReplica(int worker, Model& into) override;
  const DataSetIterator* trainingData() const override { return fit_ ? usersData_ : nullptr; }

  void fit(DataSetIterator& users, std::int64_t epochs, const std::stop_token& stop);
  std::string plan() const {
    require(session_ != nullptr,
            "plan: the last fit() failed while its nodes changed; the next call begins anew");
    return session_->plan();
  }
  std::int64_t epochsUntil(std::int64_t epochs) const { return model_.epochsUntil(epochs); }

  bool running() const { return running_; }
  const ParallelOptions options_;
  const OwnerProcess owner;

 private:
  /// While an object of this class lives, the wrapper runs a call of the thread that made it.
  struct Call;
  struct ElasticFit;

  ReplicaSet& replicas() const { return session_->replicas(); }
  void beginSession();
  /// @throws TrainingError if the training fails, or too few nodes are left.
  void fitOverElasticNodes(DataSetIterator& data, std::int64_t epochs);
  bool fitHere(DataSetIterator& data, std::int64_t epochs, FitParts* parts);
  AnyEvaluation evaluate(DataSetIterator& data, std::optional<Task> task, NodeLink* link);
  bool inListener() const;

  Model& model_;
  const Placements placements_;
  std::vector<std::unique_ptr<Batch>> batches_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> running_{false};
  std::atomic<std::thread::id> callersThread_;  // of the current call
  FitCall* fit_ = nullptr;                      // the current call, if it is a fit; used by its thread only
  DataSetIterator* usersData_ = nullptr;        // the user's iterator, whose batches a fit may join
  Activity caller_, reading_;
  mutable Mutex timesMutex_;              // also guards the replacement of session_
  std::vector<WorkerTimes> timesBefore_;  // of earlier sessions in this `fit()`; may be empty
  TaskThread reader_{"the reader"};       // this and below have threads: destroyed before what they use
  // Null if a new one could not be made.
  std::unique_ptr<WrapperSession> session_;
};

struct ParallelWrapper::Impl::Call {
  /// The caller has just set `running_`.
  explicit Call(Impl& of) : wrapper(of) { wrapper.callersThread_ = std::this_thread::get_id(); }
  ~Call() {
    wrapper.caller_.set(Activity::Kind::Idle);
    wrapper.callersThread_ = std::thread::id();
    wrapper.running_ = false;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Impl& wrapper;
};

}  // namespace muster
