#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/nn/model.h"
#include "muster/parallel/runtime/activity.h"
#include "muster/parallel/runtime/placement.h"
#include "muster/parallel/runtime/task_thread.h"

namespace muster {

/// A thread with a device, a context and a replica of the user's model, all made and destroyed on that
/// thread.
class ReplicaThread {
 public:
  /// @param role  its name in messages, as in "worker"; a string literal.
  /// @param threads  number of threads that its operations use on the CPU.
  ReplicaThread(std::string_view role, int index, Placement placement, int threads);
  ReplicaThread(const ReplicaThread&) = delete;
  ReplicaThread& operator=(const ReplicaThread&) = delete;

  std::string_view role() const { return role_; }
  int index() const { return index_; }
  const Placement& placement() const { return placement_; }
  /// As in "worker 1 on cpu".
  std::string name() const;
  const Activity& activity() const { return activity_; }

  /// Adds a task for this thread to `tasks`. While it runs, `activity` shows `kind`.
  void addTo(Tasks& tasks, Activity::Kind kind, std::function<void()> task);

  // For tasks on this thread, and for the thread that starts them while none runs.
  Activity& activity() { return activity_; }
  Context& context() { return *context_; }
  Model& replica() { return *replica_; }
  bool hasReplica() const { return replica_ != nullptr; }

  // For tasks on this thread.
  /// Makes the context if there is none.
  void makeContext();
  /// Makes the replica, and the context if there is none. `model` does not change meanwhile.
  void makeReplica(const Model& model);

 private:
  const std::string_view role_;
  const int index_;
  const Placement placement_;
  const int threads_;
  Activity activity_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Model> replica_;
  TaskThread thread_;  // last: ends before the members above are destroyed
};

/// Runs `task` on each of the threads, synchronizes its context, and waits for all of them.
/// @throws TrainingError, as in "worker 1 on cpu could not be made: ...", for the first thread that failed. A
///         thread with a PeerFailure counts only if no other thread failed.
void runOnAll(std::span<ReplicaThread* const> threads, std::string_view problem,
              const std::function<void(ReplicaThread&)>& task);

/// Pointers to the blocks of Model::blocks.
std::vector<StateBlock*> blocksOf(Model& model);

/// Checks that a replica has the blocks and segments of another model, in memory of its own. A `replicate()`
/// that copies tensors copies handles that share memory, and then all replicas would train one array.
/// @param whose  what the error calls the other model, as in "the model's".
/// @throws InvalidArgument naming the block that differs.
void requireCopy(std::span<StateBlock* const> replica, std::span<StateBlock* const> other,
                 std::string_view whose);

/// Checks each replica with `requireCopy` against `model` and against the replicas before it.
/// @param blocksOf  the blocks to compare.
/// @throws TrainingError, as in "worker 1 on cpu could not be made: ...".
void requireCopies(std::span<ReplicaThread* const> threads, Model& model,
                   const std::function<std::vector<StateBlock*>(Model&)>& blocksOf);

}  // namespace muster
