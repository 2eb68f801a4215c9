#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "muster/parallel/nodes/node_transport.h"

namespace muster {

class NodeCall;

/// The messages that a link has begun and that are not done. Each has a ticket, by which the transport
/// reports that it is done. Used by one thread.
class OpenMessages {
 public:
  struct Entry {
    NodeCall* call = nullptr;  ///< null: a message of the link itself
    NodeMessage message;
  };
  /// @param most  messages that may be open at a time without an allocation.
  explicit OpenMessages(std::size_t most) {
    entries_.reserve(most);
    free_.reserve(most);
  }

  /// @return the message's ticket. If memory runs out, the message is not added.
  int add(NodeCall* call, const NodeMessage& message) {
    if (free_.empty()) {  // if memory runs out here, no ticket is without its entry
      if (free_.capacity() == entries_.size()) free_.reserve(2 * entries_.size() + 1);
      entries_.emplace_back();
      free_.push_back(static_cast<int>(entries_.size()) - 1);
    }
    const int ticket = free_.back();
    free_.pop_back();
    entries_[static_cast<std::size_t>(ticket)] = {call, message};
    if (call) ++ofCalls_;
    return ticket;
  }
  /// The message is done: its ticket may be used again.
  Entry take(int ticket) {
    const Entry entry = std::exchange(entries_[static_cast<std::size_t>(ticket)], {});
    free_.push_back(ticket);
    if (entry.call) --ofCalls_;
    return entry;
  }
  int ofCalls() const { return ofCalls_; }  // how many
  /// Whether a call waits for a message of this node.
  bool waitsFor(int node) const {
    for (const auto& [call, message] : entries_)
      if (call && message.node == node && message.way == NodeMessage::Way::Receive) return true;
    return false;
  }

 private:
  std::vector<Entry> entries_;  // [ticket]
  std::vector<int> free_;       // tickets
  int ofCalls_ = 0;
};

}  // namespace muster
