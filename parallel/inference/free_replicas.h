#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/inference/answer_signal.h"
#include "muster/parallel/inference/parallel_inference.h"
#include "muster/parallel/runtime/placement.h"

namespace muster {

/// A replica without a thread, and the version that it has.
struct FreeReplica {
  FreeReplica(const Model& original, const Placement& placement, int threads)
      : context(placement.device, {.threads = threads, .mathMode = placement.mathMode}),
        model(original.replicate(context)) {}

  Context context;
  std::unique_ptr<Model> model;
  std::int64_t version = 0;
};

/// Replicas without threads, lent to callers one call at a time. Thread-safe.
class FreeReplicas {
 public:
  explicit FreeReplicas(const InferenceOptions& options);

  /// While it lives, the calling thread uses a replica.
  class Loan {
   public:
    /// Waits for a replica. @throws DeadlineExceeded, QueueFull, InferenceShutDown.
    Loan(FreeReplicas& replicas, ParallelInference::Clock::time_point deadline);
    ~Loan() { giveBack(); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    FreeReplica& replica() { return *replica_; }

   private:
    friend class FreeReplicas;
    /// Waits no longer. @return false if it has a replica after all.
    bool leave();
    /// To the loan that has waited longest, or to those that are free.
    void giveBack();

    FreeReplicas& replicas_;
    std::unique_ptr<FreeReplica> replica_;  // guarded by the mutex until it is handed over
    AnswerSignal handedOver_;
  };

  /// Before the first loan.
  void add(std::unique_ptr<FreeReplica> replica);
  /// Loans that wait for a replica.
  std::int64_t waiting() const;
  /// Refuses loans from now on, and waits until all that were asked for have ended.
  void close();

 private:
  /// @return false if the loan has to wait: it is handed a replica, unless it is withdrawn.
  bool lend(Loan& loan);
  /// @return false if the loan was handed a replica meanwhile.
  bool withdraw(const Loan& loan);
  /// @return the loan that gets the replica next, to be told, or null.
  Loan* takeBack(std::unique_ptr<FreeReplica> replica);

  const std::size_t queueLimit_;
  const WhenFull whenFull_;

  mutable Mutex mutex_;
  std::condition_variable left_;
  std::vector<std::unique_ptr<FreeReplica>> free_ MUSTER_GUARDED_BY(mutex_);
  std::deque<Loan*> waiting_ MUSTER_GUARDED_BY(mutex_);  ///< for a replica, in the order in which they came
  std::size_t lent_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster
