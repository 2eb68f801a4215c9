#pragma once

#include <functional>
#include <memory>
#include <string>

#include "muster/parallel/nodes/elastic/membership.h"
#include "muster/parallel/nodes/node_link.h"

namespace muster {

/// The connection of a training over elastic nodes: one NodeLink for each generation. For the thread of
/// `fit()`.
class ElasticNodes {
 public:
  /// Connects the members of a generation; null if this process is its only one. @throws what NodeLink
  /// throws; NotConnected for nodes that cannot be reached.
  using Connect = std::function<std::shared_ptr<NodeLink>(NodeStore&, const Generation&)>;

  ElasticNodes(std::unique_ptr<NodeStore> store, Membership::Options options, Connect connect);

  /// Begins a training. @param common  see Membership::Options. @throws what Membership throws.
  void begin(const std::string& common);
  bool running() const { return membership_ != nullptr; }
  /// Leaves the generation, if there is one, and waits until the next one is connected.
  /// @return false if it was stopped meanwhile: this process has no connection then. @throws as Membership.
  bool next(const std::function<bool()>& stopped);
  /// @throws NodeFailure if the others continue without this process; call it at the end of the training.
  void requireCurrent();
  /// Ends the training for this process.
  /// @param well  whether all nodes have reached the end; they then confirm that to each other.
  void end(bool well);

  const Generation& generation() const { return generation_; }
  /// The connection of the generation; null if this process is alone.
  const std::shared_ptr<NodeLink>& link() const { return link_; }
  /// This process's number in the generation; after the training, in the last one. If `next` threw: the rank
  /// among the remaining processes, above 0 if others continue; see Membership::place.
  int node() const { return node_; }
  int nodes() const { return link_ ? link_->nodes() : 1; }
  /// Whether a process waits to join the generation.
  const std::atomic<bool>& joinRequested() const { return membership_->joinRequested(); }

 private:
  const std::unique_ptr<NodeStore> store_;
  const Membership::Options options_;
  const Connect connect_;
  Generation generation_;
  int node_ = 0;
  std::shared_ptr<NodeLink> link_;
  std::unique_ptr<Membership> membership_;  // while a training runs
};

}  // namespace muster
