#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/parallel/nodes/node_transport.h"

namespace muster {

/// Nodes that could not be connected; all others can be reached.
class NotConnected : public NodeFailure {
 public:
  NotConnected(std::vector<int> nodes, const std::string& why) : NodeFailure(why), nodes_(std::move(nodes)) {}
  const std::vector<int>& nodes() const { return nodes_; }

 private:
  std::vector<int> nodes_;
};

}  // namespace muster
