#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "muster/parallel/training/ledger.h"
#include "muster/parallel/training/node_place.h"

namespace muster {

/// What nodes send each other at the end of a round, so that all make the same decision: the contributions of
/// their workers, and their votes. Used by one thread at a time.
class RoundMessages {
 public:
  explicit RoundMessages(const NodePlace& place);

  /// Sends both to every node. @param contributions  [worker] receives those of all nodes.
  /// @return the votes of all nodes together.
  Votes agree(Exchange& exchange, std::span<Contribution> contributions, const Votes& votes);

  /// The message of this node. @param contributions  [worker] of all nodes; only this node's are read.
  std::span<const std::byte> write(std::span<const Contribution> contributions, const Votes& votes);
  /// Room for the messages of all nodes, in node order.
  std::span<std::byte> room() { return std::as_writable_bytes(std::span(all_)); }
  /// Reads what `room` has received. @param contributions  [worker] receives those of all nodes.
  /// @return the votes of all nodes together.
  Votes read(std::span<Contribution> contributions) const;

 private:
  /// The contribution of one worker, with the votes of its node.
  struct Item {
    Contribution contribution;
    Votes votes;
  };
  const NodePlace place_;
  std::vector<Item> own_;  // [local worker]
  std::vector<Item> all_;  // [node][local worker]
};

}  // namespace muster
