#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

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
    void wait(std::unique_lock<std::mutex>& lock, ParallelInference::Clock::time_point deadline);
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
  const std::size_t queueLimit_;
  const WhenFull whenFull_;

  mutable std::mutex mutex_;
  // From here on guarded by mutex_.
  std::vector<std::unique_ptr<FreeReplica>> free_;
  std::deque<Loan*> waiting_;  ///< for a replica, in the order in which they came
  std::size_t lent_ = 0;
  std::condition_variable left_;
  bool closed_ = false;
};

}  // namespace muster
