#pragma once

#include <cstdint>
#include <memory>

#include "muster/parallel/exchange/node_transport.h"

namespace muster {

/// Nodes that are threads of one process, on a virtual clock: computes how long a network would take. Bytes
/// and latency are charged to the clock, and nothing sleeps. All members are thread-safe.
class VirtualNetwork {
 public:
  /// How fast nodes send.
  struct Link {
    double bytesPerSecond = 12.5e6;  ///< that a node can send, over all its messages: 100 Mbit/s
    double latency = 1e-3;           ///< seconds from node to node
  };
  explicit VirtualNetwork(int nodes);
  VirtualNetwork(int nodes, Link link);
  ~VirtualNetwork();

  int nodes() const;
  /// The transport of a node, once each.
  std::unique_ptr<NodeTransport> transport(int node);

  /// Nothing that this node sends arrives, as if it had been stopped or cut off.
  /// @param afterBytes  that it may send before, from the beginning, signs of life not counted.
  void silence(int node, std::int64_t afterBytes = 0);
  /// From now on nothing arrives that these two send each other.
  void cut(int one, int other);

  /// Until `release`, what the merges send does not arrive: only what nodes tell each other beside them.
  void hold();
  void release();

  /// What a node has sent: all but the signs of life, which are sent by the clock on the wall.
  std::int64_t bytesSent(int node) const;
  /// When the last message arrived. Each node sends one message after the other, and sends none before it has
  /// received what came earlier. Computing takes no time.
  double seconds() const;

 private:
  struct Hub;
  class End;
  const std::shared_ptr<Hub> hub_;
};

}  // namespace muster
