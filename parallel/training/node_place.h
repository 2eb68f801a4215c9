#pragma once

namespace muster {

/// Which workers of a training are this process's: local worker l of node n is worker l * nodes + n, so that
/// batch b of an epoch is read by node b mod nodes.
struct NodePlace {
  int node = 0, nodes = 1;
  int local = 1;  ///< workers of each node

  int workers() const { return local * nodes; }
  int worker(int localWorker) const { return localWorker * nodes + node; }
  int localOf(int worker) const { return worker / nodes; }
  bool isHere(int worker) const { return worker % nodes == node; }
};

}  // namespace muster
