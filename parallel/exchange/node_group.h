#pragma once

#include <cstddef>
#include <span>

#include "muster/core/tensor/tensor.h"

namespace muster {

struct SharedBlock;
struct StrategyState;

/// Messages of participants to all nodes: a head of one size for all, and a body whose size the head says.
/// Functions for different participants are called by several threads.
class Messages {
 public:
  virtual ~Messages() = default;
  /// The participant's head: written before it is sent, or received.
  virtual std::span<std::byte> head(std::size_t participant) = 0;
  /// Where its body is, of the size that the head says; also called for a head that was received.
  /// @throws InvalidArgument if no participant can have sent this head.
  virtual std::span<std::byte> body(std::size_t participant) = 0;
  /// Called once the body was received. @throws InvalidArgument as `body`.
  virtual void arrived(std::size_t /*participant*/) {}
};

/// What the nodes of a training send each other between merges. One thread of each node calls it, while no
/// participant works.
class NodeGroup {
 public:
  virtual ~NodeGroup() = default;

  /// All-gathers bytes. @param all  [node] as many bytes each as `own`.
  virtual void allGather(std::span<const std::byte> own, std::span<std::byte> all) = 0;
  /// Gathers on this node the values of all nodes of a block of Place::Node, in node order, or of all workers
  /// of a block of Place::Replica, in worker order. Waits until the other nodes send theirs: those of
  /// Place::Node in `allGather`, the others also in `answer`.
  virtual void gather(const StrategyState& block, const Tensor& into) = 0;
  /// Gathers on this node the values of all replicas of a block, in worker order. Waits until the other nodes
  /// call `answer` or `allGather`, which send theirs.
  virtual void gather(const SharedBlock& block, const Tensor& into) = 0;
  /// From now on nodes may gather replicas, and blocks of Place::Replica.
  virtual void allowGathering() = 0;
  /// Sends this node's replicas to every node that gathers them; returns when no node does any more. All
  /// nodes call it at the end of a round; it does nothing before `allowGathering`.
  virtual void answer() = 0;
  /// Waits until what was launched is complete, and lands nothing.
  /// @return false if some of it has failed: its landing will throw.
  virtual bool awaitLaunched() = 0;
};

}  // namespace muster
