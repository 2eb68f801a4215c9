#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "muster/parallel/inference/call_queue.h"
#include "muster/parallel/inference/joined_batch.h"
#include "muster/parallel/inference/model_versions.h"
#include "muster/parallel/runtime/replica_thread.h"

namespace muster {

/// Computes `options.example` with each number of examples that may be computed at once, so that the model
/// has a program for it. Does nothing without an example.
void compileFor(const InferenceOptions& options, Model& model);

/// A thread with a replica that answers the calls of a queue.
class InferenceWorker {
 public:
  /// Starts the thread. @param queue, versions  must outlive this object.
  InferenceWorker(int index, const Placement& placement, const InferenceOptions& options, CallQueue& queue,
                  const ModelVersions& versions);

  ReplicaThread& thread() { return thread_; }

  // Called on the thread.
  /// Makes the replica, gives it the latest version, and compiles it.
  void prepare(const Model& model, const InferenceOptions& options);
  /// Answers calls until the queue is closed and empty.
  void serve();

 private:
  struct Outcome {
    Tensor output;
    std::exception_ptr failure;
  };

  void answer();
  /// Copies the features of all calls.
  void join();
  /// Fills the outcomes. @throws what the model throws if there is only one call.
  void compute();

  CallQueue& queue_;
  const ModelVersions& versions_;

  // Used by the thread only.
  std::int64_t version_ = 0;              // of the replica
  std::shared_ptr<CallGroup> group_;      // the group that it answers
  std::vector<JoinedBatch::Part> parts_;  // [call]
  std::vector<JoinedBatch::Part> rows_;   // [call] in the joined batch
  std::vector<Outcome> outcomes_;         // [call]
  JoinedBatch joined_, alone_;

  ReplicaThread thread_;  // last: destroyed before the members that it uses
};

}  // namespace muster
