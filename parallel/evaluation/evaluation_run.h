#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/core/base/queue.h"
#include "muster/core/data/data_set_iterator.h"
#include "muster/core/eval/any_evaluation.h"
#include "muster/parallel/exchange/exchange.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/runtime/first_failure.h"
#include "muster/parallel/runtime/replica_thread.h"

namespace muster {

/// One evaluation of the user's model with the replicas of a wrapper. The calling thread reads the batches
/// and hands batch b to replica b mod W; each replica's thread counts what its replica predicts.
///
/// No thread waits for ever: the queues are always closed at the end of the data, and until then every thread
/// gives its batches back, even after a failure.
class EvaluationRun {
 public:
  /// @param model  the replicas take its state. It must not change meanwhile.
  /// @param task  empty: the model's own.
  /// @param batchesAhead  batches that are read ahead, over all replicas.
  /// @param link, exchange  to the other nodes of the same evaluation: batch b then belongs to node b mod N.
  ///                        Null link: no other nodes.
  /// @param root  see requireMemoryRoom.
  EvaluationRun(Model& model, std::optional<Task> task, std::span<ReplicaThread* const> threads,
                std::int64_t batchesAhead, NodeLink* link, Exchange* exchange, std::string root);

  /// Evaluates while the threads run no other task.
  /// @param caller  shows what the calling thread does.
  /// @param first  see `deal`.
  /// @throws TrainingError for the failure of the earliest batch, the same in every run; InvalidArgument if
  ///         there were no batches.
  AnyEvaluation evaluate(DataSetIterator& data, Activity& caller, Batch* first = nullptr);

  // For an evaluation inside another task of these threads: each thread calls `work`. The calling thread
  // calls `deal` and, when all threads have returned from `work`, `result`.

  /// Reads the data set from its start. A failure of the iterator becomes the run's failure.
  /// @param first  the first batch, if it was read already; else null. An iterator may not be able to give it
  ///               again.
  void deal(DataSetIterator& data, Activity& caller, Batch* first = nullptr);
  /// Gives the replica the model's state, counts until the queue is closed, and gives the replica its own
  /// state back. A failure becomes the run's failure.
  void work(int replica) noexcept;
  /// The counts of all replicas. @throws what `evaluate` throws.
  AnyEvaluation result();

 private:
  /// Fails the run if memory has no room for the batches after the first.
  /// @param batches  the most that this node will read. @param first  the others will be as large.
  void requireRoomForBatches(const Batch& first, std::int64_t batches) noexcept;
  void countBatches(int replica);
  /// Sets the failure to the exception in progress.
  void failInBatch(std::int64_t sequence, int replica) noexcept;

  const InputDescription* description_;  // the model's, or the data's if it has none
  const std::optional<Task> task_;
  NodeLink* const link_;
  Exchange* const exchange_;
  const std::string root_;

  const std::span<ReplicaThread* const> threads_;
  std::vector<Tensor> state_;   // the model's blocks
  std::vector<Batch> batches_;  // circulate between free_ and queues_
  std::vector<std::optional<AnyEvaluation>>
      counts_;  // [replica] used by its thread only, until all have ended
  BoundedQueue<Batch*> free_;
  std::vector<std::unique_ptr<BoundedQueue<Batch*>>> queues_;  // [replica]
  FirstFailure failure_;                                       // of the earliest batch that failed
};

/// Adds up the counts of all nodes; every node calls it. Returns nothing if no node has counts.
/// @param exchange  of these nodes; used instead of the link, so that another node may ask for blocks
///                  meanwhile.
/// @param failedAt  the earliest batch that failed on this node; the largest number if none did.
/// @return nothing if this node's failure is the earliest.
/// @throws TrainingError naming the node with the earliest failure, if it is another node; InvalidArgument
///         if nodes predict different classes; NodeFailure.
std::optional<AnyEvaluation> addUpNodes(Exchange& exchange, const NodeLink& link, std::int64_t failedAt,
                                        const std::optional<AnyEvaluation>& own);

}  // namespace muster
