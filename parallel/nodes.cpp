#include "muster/parallel/nodes.h"

#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/nodes/node_link.h"

namespace muster {

Nodes::Nodes(const std::function<std::unique_ptr<NodeTransport>()>& make, std::chrono::milliseconds silence)
    : link_(std::make_shared<NodeLink>(make, silence)) {}

int Nodes::node() const {
  return elastic_ ? elastic_->node() : link_ ? link_->node() : 0;
}

int Nodes::nodes() const {
  return elastic_ ? elastic_->nodes() : link_ ? link_->nodes() : 1;
}

NodeLink* Nodes::link() const {
  return nodes() == 1 ? nullptr : elastic_ ? elastic_->link().get() : link_.get();
}

}  // namespace muster
