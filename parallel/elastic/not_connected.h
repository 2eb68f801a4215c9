#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/parallel/exchange/node_transport.h"

namespace muster {

/// Of nodes that were to connect these cannot be reached, and all others can.
class NotConnected : public NodeFailure {
 public:
  NotConnected(std::vector<int> nodes, const std::string& why) : NodeFailure(why), nodes_(std::move(nodes)) {}
  const std::vector<int>& nodes() const { return nodes_; }

 private:
  std::vector<int> nodes_;
};

}  // namespace muster
