#pragma once

#include <optional>
#include <string>

#include "muster/parallel/nodes.h"

namespace muster::detail {

/// Options by which a program finds the other nodes of its training. Their defaults are the environment
/// variables MUSTER_STORE, MUSTER_NODE, MUSTER_NODES, MUSTER_MIN_NODES, MUSTER_INTERFACE and MUSTER_SILENCE.
/// Without a store, the nodes are the processes that mpirun started.
struct NodeOptions {
  static constexpr int kMostNodes = 1024;

  /// @throws InvalidArgument for a variable that is not a valid number, or out of range.
  NodeOptions();

  std::string store, interface;
  int node = 0, nodes = 1;
  std::optional<int> minNodes;  ///< with elastic nodes; empty: a fixed number of nodes
  double silence = 30;          ///< seconds

  /// The number of nodes, before they are connected; with elastic nodes, the minimum. At most 1024.
  /// @throws InvalidArgument if a launcher has started more.
  int count() const;
  /// Connects and waits for the other nodes; with elastic nodes, `fit` waits instead. @throws
  /// InvalidArgument if this build lacks Gloo, or lacks MPI and a launcher started it; otherwise as
  /// Nodes.
  Nodes connect() const;
};

/// Whether any node says so, for nodes that have ended a `fit` well: each of them calls it. Of elastic
/// processes, and after a failure of another node, only this one's word counts.
bool onAnyNode(const Nodes& nodes, bool here);

/// The node that saves what was trained: node 0, or if it was lost, the first that is left.
int savingNode(const Nodes& nodes);

/// The processes that mpirun started; a single node without mpirun. Without MPI it refuses several processes.
Nodes launchedNodes();

// Each of these throws if its module is not built.

Nodes nodesByMpi();
Nodes nodesByGloo(const Nodes::Gloo& options);
Nodes elasticNodes(const Nodes::Elastic& options);

}  // namespace muster::detail
