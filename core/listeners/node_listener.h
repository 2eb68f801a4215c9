#pragma once

#include <string>
#include <typeinfo>

#include "muster/core/nn/listener.h"

namespace muster {

/// A merged listener that a training over several nodes calls on each of them, at the same merges and epochs,
/// and not on node 0 alone. When it calls Trainer::evaluate, each node evaluates a share, and all get the
/// counts of the whole. So all nodes must have these listeners in the same order, and each listener must make
/// the same calls on all nodes.
class NodeListener : public Listener {
 public:
  /// Before the first call: on which node it is, from 0.
  void setNode(int node) { node_ = node; }
  /// The listener's kind, and the settings that must be the same on all nodes, as text: nodes compare it
  /// before they train. Default: the name of its type, as the compiler gives it.
  virtual std::string describe() const { return typeid(*this).name(); }

 protected:
  /// Whether this is node 0, or there are no others: it writes lines and files, and looks at the clock.
  bool onFirstNode() const { return node_ == 0; }

 private:
  int node_ = 0;
};

}  // namespace muster
