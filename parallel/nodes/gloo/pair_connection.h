#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "muster/parallel/nodes/elastic/node_store.h"

namespace gloo::transport {
class Context;
class Device;
}  // namespace gloo::transport

namespace muster {

/// How the two ends of a connection find each other.
struct PairMeeting {
  NodeStore& store;    ///< where both write their addresses
  std::string prefix;  ///< of the texts' names
  std::string word;    ///< known to the nodes of this training alone; each end sends it first
  int node = 0;        ///< this one
  int nodes = 1;
};

/// The name of the text with the address at which node `from` listens for node `to`.
std::string addressName(const std::string& prefix, int from, int to);

/// Gloo's words without the source location at their start.
std::string_view wordsOfGloo(std::string_view why);

/// Connects this node to `other`, which makes the same call. A process that connects instead of it, as a port
/// scan does, does not know the word: its connection is closed, and both nodes try again at new addresses.
/// @return  a context of Gloo with this one connection.
/// @throws NodeFailure if `other` was not connected in this time.
std::shared_ptr<gloo::transport::Context> connectPair(gloo::transport::Device& device,
                                                      const PairMeeting& meeting, int other,
                                                      std::chrono::milliseconds limit);

}  // namespace muster
