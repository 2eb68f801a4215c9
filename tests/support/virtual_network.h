#pragma once

#include "muster/parallel/nodes/node_transport.h"
#include "tests/support/standard.h"

namespace muster {

/// Simulates nodes as threads of one process with a virtual clock: bytes and latency advance the clock, and
/// no thread sleeps. All members are thread-safe.
class VirtualNetwork {
 public:
  /// Speed of the network.
  struct Link {
    double bytesPerSecond = 12.5e6;  ///< total sending rate of a node: 100 Mbit/s
    double latency = 1e-3;           ///< seconds from node to node
  };
  explicit VirtualNetwork(int nodes);
  VirtualNetwork(int nodes, Link link);
  ~VirtualNetwork();

  int nodes() const;
  /// The transport of a node; call once per node.
  std::unique_ptr<NodeTransport> transport(int node);

  /// Drops all messages of this node, as if it had stopped or lost its connection.
  /// @param afterBytes  sent from the start before messages are dropped, not counting heartbeats.
  void silence(int node, std::int64_t afterBytes = 0);
  /// From now on, drops all messages between these two nodes.
  void cut(int one, int other);

  /// Until `release`, delays the messages of merges; other messages arrive.
  void hold();
  void release();

  /// Bytes that a node has sent, without heartbeats, which depend on real time.
  std::int64_t bytesSent(int node) const;
  /// Virtual time of the last arrival. A node sends one message at a time, and only after it has received all
  /// earlier arrivals. Computing takes no time.
  double seconds() const;

 private:
  struct Hub;
  class End;
  const std::shared_ptr<Hub> hub_;
};

}  // namespace muster
