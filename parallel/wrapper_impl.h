#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/runtime/owner.h"
#include "muster/parallel/runtime/stall_watch.h"
#include "muster/parallel/training/fit_call.h"
#include "muster/parallel/training/memory_need.h"

namespace muster {

/// What a ParallelWrapper is made of: parallel_wrapper.cpp, and wrapper_evaluation.cpp for evaluations.
struct ParallelWrapper::Impl final : Trainer {
  Impl(Model& model, ParallelOptions options);

  // Trainer
  Model& model() override;
  int workers() const override { return options_.workers; }
  void stopFit() override { stop_ = true; }
  std::vector<WorkerTimes> workerTimes() const override;
  Evaluation evaluate(DataSetIterator& data) override;
  TrainingState trainingState() override;
  const DataSetIterator* trainingData() const override { return fit_ ? usersData_ : nullptr; }

  void fit(DataSetIterator& users, std::int64_t epochs, const std::stop_token& stop);
  std::string plan() const;

  bool running() const { return running_; }
  const ParallelOptions options_;
  const OwnerProcess owner;

 private:
  /// While it lives, the wrapper is at work for the thread that made it.
  class Call;

  std::optional<MemoryNeed> memoryNeed() const { return needOnCpu(model_, *strategy_, placements_); }
  void makeReplicas(const Batch& first);
  bool prepareReplicas(DataSetIterator& data, std::int64_t epochs, const Resumption& resumed, Batch& first);
  void beginSession();
  bool fitHere(DataSetIterator& data, std::int64_t epochs, FitParts* parts);
  void fitElastic(DataSetIterator& data, std::int64_t epochs);
  bool trainTogether(DataSetIterator& data, std::int64_t lastEpoch, bool& inTraining, FitParts& parts);
  void tellEnd(FitParts& parts);
  bool inListener() const;
  Evaluation evaluateOverNodes(DataSetIterator& data);
  /// @param link  evaluates with the other nodes; null: alone.
  /// @param counted  set once a failure is reported with the counts.
  Evaluation evaluateOnWorkers(DataSetIterator& data, NodeLink* link, bool* counted = nullptr);
  std::vector<StallWatch::Subject> watchedThreads() const;

  Model& model_;
  const Placements placements_;
  // Made anew where nodes come and go, as the replicas and what watches them.
  Listeners listeners_;  // the user's and our own
  std::unique_ptr<Strategy> strategy_;
  std::int64_t batchesInRound_ = 0;
  std::shared_ptr<NodeLink> link_;  // of nodes that come and go: the replicas' as long as they live
  std::vector<std::unique_ptr<Batch>> batches_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> running_{false};
  std::atomic<std::thread::id> callersThread_;  // of the call that is running
  FitCall* fit_ = nullptr;                      // that call, if it is a fit; its thread only
  const DataSetIterator* data_ = nullptr;       // likewise, what it reads
  const DataSetIterator* usersData_ = nullptr;  // and what the user gave, whose batches it may join
  Activity caller_, reading_;
  mutable Mutex timesMutex_;            // behind which the replicas change places
  std::optional<ReplicaSet> replicas_;  // from here on, threads: they end before what they use
  TaskThread reader_{"the reader"};
  std::optional<StallWatch> watch_;
};

class ParallelWrapper::Impl::Call {
 public:
  /// `running_` has just been set.
  explicit Call(Impl& wrapper) : wrapper_(wrapper) { wrapper_.callersThread_ = std::this_thread::get_id(); }
  ~Call() {
    wrapper_.caller_.set(Activity::Kind::Idle);
    wrapper_.callersThread_ = std::thread::id();
    wrapper_.running_ = false;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Impl& wrapper_;
};

}  // namespace muster
