#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "muster/core/base/error.h"

namespace muster {

/// Another node of the training has failed, has ended or has fallen silent, or the network has failed. Names
/// the node.
class NodeFailure : public Error {
 public:
  using Error::Error;
};

/// A transport has lost this node, and can still reach the others.
class NodeLost : public NodeFailure {
 public:
  /// @param why  what follows the node's name and a colon.
  NodeLost(int node, const std::string& why) : NodeFailure(why), node_(node) {}
  int node() const { return node_; }

 private:
  int node_;
};

/// Bytes on their way between this node and another one. They stay where they are until the message is done.
struct NodeMessage {
  enum class Way { Send, Receive };
  Way way = Way::Send;
  int node = 0;     ///< the other one
  int channel = 0;  ///< messages of one channel between two nodes keep their order
  std::span<std::byte> bytes;
};

/// Moves bytes between the nodes of a training, and knows no sums. Used by one thread, which also makes and
/// destroys it. Never waits.
class NodeTransport {
 public:
  virtual ~NodeTransport() = default;
  virtual int node() const = 0;  ///< this process, from 0
  virtual int nodes() const = 0;
  /// The host of this node, for messages.
  virtual std::string host() const = 0;
  /// As in "MPI".
  virtual std::string describe() const = 0;

  /// Begins a message; one with a node that was lost before is never done.
  /// @param ticket  what `poll` calls it; not in use by another one.
  /// @throws NodeFailure if the network refuses.
  virtual void begin(const NodeMessage& message, int ticket) = 0;
  /// Advances all messages, and adds the tickets of those that are done. Of a message that was sent, done
  /// means that its bytes may change.
  /// @throws NodeLost once for a node with which messages are open; NodeFailure if the network fails, or a
  ///         message has another size than was expected.
  virtual void poll(std::vector<int>& done) = 0;
  /// Before it is destroyed after a failure: messages may be open, and it waits for no other node.
  virtual void abandon() noexcept {}
};

}  // namespace muster
