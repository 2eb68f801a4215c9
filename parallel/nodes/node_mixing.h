#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/parallel/exchange/row_mixer.h"
#include "muster/parallel/nodes/node_link.h"

namespace muster {

/// One local participant's part in mixing replicas over nodes (MergeOps::mix). Worker l of node n is worker
/// l * N + n. Each node sends a replica's elements to the nodes with a row that reads it, in pieces: while
/// one is in transfer, the rows of the one before are formed. Used by one thread.
class NodeMixing {
 public:
  /// @param local  workers of each node.  @param channel  for the corresponding participants of all nodes.
  NodeMixing(NodeLink& link, int local, int channel);

  /// Replaces the replicas of this node by their rows, and for rule Moments also the merged copy. The merged
  /// copy of other blocks does not change.
  /// @param block  of rule Average or Moments.
  /// @param own  this participant's elements; for Moments its means.
  void run(const SharedBlock& block, const Mixing& mixing, Slice own, Context& context);
  /// Replaces the replicas of this node, and the merged copy, by the merged means and variances.
  /// @param block  of rule Moments.  @param own  this participant's means.
  void merge(const SharedBlock& block, std::span<const double> weights, Slice own, Context& context);

 private:
  struct Transfer {
    NodeCall call{0};
    Slice piece = {};
    Tensor received;  // bytes: [replica of another node that is read here][part][element of the piece]
  };

  void findReads(const SharedBlock& block, const Mixing& mixing);
  bool reads(int node, std::size_t worker) const {
    return reads_[static_cast<std::size_t>(node) * workers_ + worker] != 0;
  }
  int nodeOf(std::size_t worker) const {
    return static_cast<int>(worker % static_cast<std::size_t>(link_.nodes()));
  }
  std::int64_t elementsAtATime(const SharedBlock& block) const;
  void send(const SharedBlock& block, Transfer& transfer, Slice piece);
  void form(const SharedBlock& block, const Mixing& mixing, Transfer& transfer, Context& context);

  NodeLink& link_;
  const std::size_t workers_;  // of all nodes
  const int channel_;
  std::vector<std::size_t> here_;  // this node's workers
  std::array<Transfer, 2> transfers_;
  RowMixer mixer_;
  Mixing merged_;  // without rows, for `merge`
  // State of the current block:
  std::vector<char> reads_;   // [node][worker] whether the node needs this replica of another node
  std::size_t mostRead_ = 0;  // the most replicas that a node needs
};

}  // namespace muster
