#pragma once

#include <array>
#include <span>
#include <vector>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/exchange/node_link.h"
#include "muster/parallel/exchange/slice.h"

namespace muster {

/// A weighted mean that is to be formed over nodes. Worker l of node n is number l * N + n.
struct NodeMean {
  std::span<const Tensor> tensors;  // [worker] without memory on other nodes
  std::span<const double> weights;  // [worker]
  double keep = 0;                  // what remains of `into`
  Tensor into;
  std::span<const Tensor> copies;  // [worker] that take the result, too, if they are here
};

/// One local participant's part in such means. It adds up the node's weighted tensors in float64, in worker
/// order; each node receives a part of the slice from all others, adds the nodes' sums in their order, rounds
/// once, and gives the result back. A slice goes in pieces, and while one is on its way the next one is added
/// up and sent. With one worker a node its tensor travels as it is. Used by one thread.
class NodeReduction {
 public:
  /// @param local  workers of each node.  @param channel  for the participants of this number on all nodes.
  NodeReduction(NodeLink& link, int local, int channel);

  /// @param own  the elements that are this participant's.
  void run(const NodeMean& mean, Slice own, Context& context);

 private:
  /// A piece on its way.
  struct Lane {
    explicit Lane(int nodes);
    NodeCall there, back;
    Slice piece = {};
    Tensor sums;      // [node][piece] of this node, for each
    Tensor received;  // [node][piece] of each node, for this one
  };

  void scatter(const NodeMean& mean, Lane& lane, Slice piece);
  void addUp(const NodeMean& mean, Lane& lane);
  void finish(const NodeMean& mean, Lane& lane);
  void addWorkers(const NodeMean& mean, int node, std::span<const Tensor> tensors, const Tensor& into);
  bool contributes(const NodeMean& mean, int node) const;
  std::size_t worker(int node, int local) const {
    return static_cast<std::size_t>(local * link_.nodes() + node);
  }
  DType typeSent(const NodeMean& mean) const;

  NodeLink& link_;
  const int local_, channel_;
  std::array<Lane, 2> lanes_;
  std::vector<Term> terms_;
  std::vector<Tensor> views_;  // [local worker] of a piece
  // Of the mean at hand.
  double total_ = 0;
  Context* context_ = nullptr;
};

}  // namespace muster
