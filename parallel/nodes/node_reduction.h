#pragma once

#include <array>
#include <span>
#include <vector>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/exchange/slice.h"
#include "muster/parallel/nodes/node_link.h"

namespace muster {

/// A weighted mean to form over nodes. Worker l of node n is worker l * N + n.
struct NodeMean {
  std::span<const Tensor> tensors;  // [worker] without memory on other nodes
  std::span<const double> weights;  // [worker]
  double keep = 0;                  // the factor of `into`'s old values
  Tensor into;
  std::span<const Tensor> copies = {};  // [worker] those on this node receive the result, too
};

/// One local participant's part in such means. It adds up the node's weighted tensors in float64, in worker
/// order. Each node receives a part of the slice from all others, adds the nodes' sums in their order, rounds
/// once, and sends the result back, in pieces. A node with a single worker sends its tensor unchanged. Used
/// by one thread.
class NodeReduction {
 public:
  /// @param local  workers of each node.  @param channel  for the corresponding participants of all nodes.
  NodeReduction(NodeLink& link, int local, int channel);

  /// @param own  this participant's elements.
  void run(const NodeMean& mean, Slice own, Context& context);

 private:
  struct Transfer {
    explicit Transfer(int nodes);
    NodeCall there, back;
    Slice piece = {};
    Tensor sums;      // [node][piece] this node's sums for each node
    Tensor received;  // [node][piece] received from each node
  };

  void scatter(const NodeMean& mean, Transfer& transfer, Slice piece);
  void addUp(const NodeMean& mean, Transfer& transfer);
  void finish(const NodeMean& mean, Transfer& transfer);
  void addWorkers(const NodeMean& mean, int node, std::span<const Tensor> tensors, const Tensor& into);
  bool contributes(const NodeMean& mean, int node) const;
  std::size_t worker(int node, int local) const {
    return static_cast<std::size_t>(local * link_.nodes() + node);
  }
  DType typeSent(const NodeMean& mean) const {
    return local_ > 1 ? DType::Float64 : mean.tensors[worker(link_.node(), 0)].dtype();
  }

  NodeLink& link_;
  const int local_, channel_;
  std::array<Transfer, 2> transfers_;
  std::vector<Term> terms_;
  std::vector<Tensor> views_;  // [local worker] of a piece
  // State of the current mean.
  double total_ = 0;
  Context* context_ = nullptr;
};

}  // namespace muster
