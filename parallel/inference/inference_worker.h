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

/// Computes `options.example` in each number of examples that is computed at once, so that the model has a
/// program for it. Does nothing without an example.
void compileFor(const InferenceOptions& options, Model& model);

/// A thread with a replica that answers the calls of a queue.
class InferenceWorker {
 public:
  /// Starts the thread. @param queue, versions  must outlive this object.
  InferenceWorker(int index, const Placement& placement, const InferenceOptions& options, CallQueue& queue,
                  const ModelVersions& versions);

  ReplicaThread& thread() { return thread_; }

  // On the thread.
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
  /// Fills the outcomes. @throws what the model throws for a call that is the only one.
  void compute();
  void computeAlone(std::size_t i);

  CallQueue& queue_;
  const ModelVersions& versions_;

  // The thread's own.
  std::int64_t version_ = 0;              // of the replica
  std::shared_ptr<CallGroup> group_;      // that it answers
  std::vector<JoinedBatch::Part> parts_;  // [call]
  std::vector<std::int64_t> begins_;      // [call], and the end: rows of the joined batch
  std::vector<Outcome> outcomes_;         // [call]
  JoinedBatch joined_, alone_;

  ReplicaThread thread_;  // last: it ends before the rest
};

}  // namespace muster
