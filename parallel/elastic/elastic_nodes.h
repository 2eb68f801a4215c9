#pragma once

#include <functional>
#include <memory>
#include <string>

#include "muster/parallel/elastic/membership.h"
#include "muster/parallel/exchange/node_link.h"

namespace muster {

/// The connection of a training whose nodes come and go: one NodeLink for each generation. Used by the thread
/// that calls `fit()`.
class ElasticNodes {
 public:
  /// Connects the members of a generation; called where there are several. @throws as NodeLink;
  /// NotConnected for nodes that cannot be reached.
  using Connect = std::function<std::shared_ptr<NodeLink>(NodeStore&, const Generation&)>;

  ElasticNodes(std::unique_ptr<NodeStore> store, Membership::Options options, Connect connect);

  /// A training begins. @param common  see Membership::Options. @throws as Membership.
  void begin(const std::string& common);
  /// Whether it has begun, and has not ended.
  bool running() const { return membership_ != nullptr; }
  /// Leaves the generation, if there is one, and waits until the next one is connected.
  /// @return false if it was stopped meanwhile: there is no other node then.
  /// @throws as Membership::next.
  bool next(const std::function<bool()>& stopped);
  /// Ends the training for this process.
  /// @param well  all nodes have come to the end, and say so to each other.
  void end(bool well);

  const Generation& generation() const { return generation_; }
  /// Of the generation; null where this process is alone.
  const std::shared_ptr<NodeLink>& link() const { return link_; }
  /// Of the last generation, once the training has ended. If `next` threw: the rank among the remaining
  /// processes; above 0 if others continue; see Membership::place.
  int node() const { return node_; }
  int nodes() const { return link_ ? link_->nodes() : 1; }
  /// Whether someone waits to join the generation.
  const std::atomic<bool>& knocked() const { return membership_->knocked(); }

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
