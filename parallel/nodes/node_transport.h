#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"

namespace muster {

/// Another node of the training has failed, has ended or sends nothing, or the network has failed. The
/// message names the node.
class NodeFailure : public Error {
 public:
  using Error::Error;
};

/// A transport has lost this node, and can still reach the others.
class NodeLost : public NodeFailure {
 public:
  /// @param why  the text after the node's name and a colon.
  NodeLost(int node, const std::string& why) : NodeFailure(why), node_(node) {}
  int node() const { return node_; }

 private:
  int node_;
};

/// Nodes that could not be connected; all others can be reached.
class NotConnected : public NodeFailure {
 public:
  NotConnected(std::vector<int> nodes, const std::string& why) : NodeFailure(why), nodes_(std::move(nodes)) {}
  const std::vector<int>& nodes() const { return nodes_; }

 private:
  std::vector<int> nodes_;
};

/// Bytes in transfer between this node and another one. They must stay in place until the message is done.
struct NodeMessage {
  enum class Way { Send, Receive };
  Way way = Way::Send;
  int node = 0;     ///< the other node
  int channel = 0;  ///< messages of one channel between two nodes keep their order
  std::span<std::byte> bytes = {};
};

/// Moves bytes between the nodes of a training; computes nothing. Used by one thread, which also makes and
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

  /// Begins a message; a message with a lost node is never done.
  /// @param ticket  its name in `poll`; no other open message has it.
  /// @throws NodeFailure if the network refuses.
  virtual void begin(const NodeMessage& message, int ticket) = 0;
  /// Advances all messages, and adds the tickets of those that are done. The bytes of a sent message may
  /// change once it is done.
  /// @throws NodeLost once for a node with which messages are open; NodeFailure if the network fails, or a
  ///         message has an unexpected size.
  virtual void poll(std::vector<int>& done) = 0;
  /// From now on the transport calls `news`, on any thread, when `poll` has something to report. Empty:
  /// never.
  /// @return false if the transport cannot do so: then call `poll` again and again.
  virtual bool onNews([[maybe_unused]] std::function<void()> news) { return false; }
  /// Call it before destruction after a failure: messages may be open, and the transport waits for no node.
  virtual void abandon() noexcept {}
};

}  // namespace muster
