#pragma once

#include <cstddef>

namespace muster {

/// Where the participants of an exchange are, and what follows from it. A value that never changes.
struct Topology {
  int participants = 1;  ///< the workers of all nodes
  /// This process and the number of processes. Participant p is on node p mod `nodes`; the replicas of
  /// participants on other nodes are tensors without memory.
  int node = 0, nodes = 1;
  /// How many senders a merge has if each sends once: the nodes over nodes, the groups in groups, otherwise
  /// the participants. Sender s sends for the participants s, s + senders, s + 2 senders, and so on.
  int senders = 1;
  /// True if one thread may merge the landing replicas while the other workers train.
  bool onePlace = false;
  /// Whether all replicas are in this process's memory and their mean is one sum. A strategy may then compute
  /// the mean in a pass of its own that also does other work (MergeOps::eachShare).
  bool oneSum = false;
  /// Whether `merge` checks the last step of each replica on the device, and writes nothing if one of these
  /// steps was refused (Model::stepRefused). If so, `merge` may be called before their scores are read.
  bool guardsMerges = false;
  /// Whether operations throw instead of writing numbers that are not finite.
  bool checksResults = true;

  bool isHere(std::size_t participant) const {
    return participant % static_cast<std::size_t>(nodes) == static_cast<std::size_t>(node);
  }
};

}  // namespace muster
