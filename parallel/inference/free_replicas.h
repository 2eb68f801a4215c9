#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/inference/parallel_inference.h"
#include "muster/parallel/runtime/placement.h"

namespace muster {

/// A replica without a thread, and the version of its state.
struct FreeReplica {
  FreeReplica(const Model& original, const Placement& placement, int threads)
      : context(placement.device, {.threads = threads, .mathMode = placement.mathMode}),
        model(original.replicate(context)) {}

  Context context;
  std::unique_ptr<Model> model;
  std::int64_t version = 0;
};

/// Replicas without threads, lent to callers one call at a time. A caller that calls again at once takes a
/// replica before sleeping callers, until the first of these has waited for `kTurn`: it gets the next
/// replica. Thread-safe.
class FreeReplicas {
 public:
  static constexpr std::chrono::microseconds kTurn{200};

  explicit FreeReplicas(const InferenceOptions& options)
      : queueLimit_(static_cast<std::size_t>(options.queueLimit)), whenFull_(options.whenFull) {}

  /// While an object of this class lives, the calling thread uses a replica.
  class Loan {
   public:
    /// Waits for a replica. @throws DeadlineExceeded, QueueFull, InferenceShutDown.
    Loan(FreeReplicas& replicas, ParallelInference::Clock::time_point deadline);
    ~Loan() {
      const Lock lock(replicas_.mutex_);
      replicas_.returnReplica(std::move(replica_));
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    FreeReplica& replica() { return *replica_; }

   private:
    friend class FreeReplicas;

    FreeReplicas& replicas_;
    std::unique_ptr<FreeReplica> replica_;  // guarded by the mutex until this loan has a replica
    std::condition_variable ready_;         // the loan has a replica, or may look for one
  };

  /// Call it before the first loan.
  void add(std::unique_ptr<FreeReplica> replica);
  /// Loans that wait for a replica.
  std::int64_t waiting() const;
  /// Refuses loans from now on, and waits until all earlier loans have ended.
  void close();

 private:
  using TimePoint = ParallelInference::Clock::time_point;

  void lend(Loan& loan, TimePoint deadline);
  /// Gives the loan a replica that is free. @return false if there is none.
  bool lendFree(Loan& loan) MUSTER_REQUIRES(mutex_);
  void waitForReplica(Lock& lock, Loan& loan, TimePoint deadline) MUSTER_REQUIRES(mutex_);
  /// Removes the loan from the waiting loans.
  void remove(const Loan& loan) MUSTER_REQUIRES(mutex_);
  void returnReplica(std::unique_ptr<FreeReplica> replica) MUSTER_REQUIRES(mutex_);
  /// Lets the first waiting loan look for a replica, if one is free.
  void wakeFirst() MUSTER_REQUIRES(mutex_);

  const std::size_t queueLimit_;
  const WhenFull whenFull_;

  mutable Mutex mutex_;
  std::condition_variable left_;
  std::vector<std::unique_ptr<FreeReplica>> free_ MUSTER_GUARDED_BY(mutex_);
  std::deque<Loan*> waiting_ MUSTER_GUARDED_BY(mutex_);      ///< for a replica, in order of arrival
  const Loan* looking_ MUSTER_GUARDED_BY(mutex_) = nullptr;  ///< front of waiting_, once it was woken to look
  /// After this time `looking_` gets the next returned replica; max() until it has looked and found none.
  TimePoint turnEnds_ MUSTER_GUARDED_BY(mutex_) = TimePoint::max();
  std::size_t all_ MUSTER_GUARDED_BY(mutex_) = 0;  ///< replicas, with those that are lent
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster
