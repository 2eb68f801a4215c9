#pragma once

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/parallel/nodes/elastic/directory_store.h"
#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/nodes/gloo/gloo_transport.h"

namespace muster::test {

/// A transport whose process dies just before it sends a given piece of its model to a joining node, unless
/// another process already died so.
class DiesServing final : public NodeTransport {
 public:
  /// @param piece  counted from 1.  @param mark  a file that the process creates before it dies.
  DiesServing(std::unique_ptr<NodeTransport> transport, int piece, std::filesystem::path mark)
      : transport_(std::move(transport)), piece_(piece), mark_(std::move(mark)) {}
  int node() const override { return transport_->node(); }
  int nodes() const override { return transport_->nodes(); }
  std::string host() const override { return transport_->host(); }
  std::string describe() const override { return transport_->describe(); }
  void begin(const NodeMessage& message, int ticket) override {
    // Recognises the messages of model_transfer.cpp; its other messages are shorter.
    const bool ofModel = message.way == NodeMessage::Way::Send && message.channel == 1 &&
                         message.bytes.size() >= std::size_t{1} << 14;
    if (ofModel && ++pieces_ == piece_ && ::open(mark_.c_str(), O_CREAT | O_EXCL, 0600) >= 0)
      ::kill(::getpid(), SIGKILL);
    transport_->begin(message, ticket);
  }
  void poll(std::vector<int>& done) override { transport_->poll(done); }
  void abandon() noexcept override { transport_->abandon(); }

 private:
  const std::unique_ptr<NodeTransport> transport_;
  const int piece_;
  const std::filesystem::path mark_;
  int pieces_ = 0;
};

/// Nodes::elastic with a directory as the store and such a transport.
inline Nodes nodesThatDieServing(const Nodes::Elastic& options, int piece,
                                 const std::filesystem::path& mark) {
  const auto connect = [options, piece, mark](NodeStore& store,
                                              const Generation& generation) -> std::shared_ptr<NodeLink> {
    if (generation.members.size() == 1) return nullptr;
    const Nodes::Gloo gloo{.node = generation.node,
                           .nodes = static_cast<int>(generation.members.size()),
                           .interface = options.interface,
                           .silence = options.silence,
                           .patience = options.silence};
    return std::make_shared<NodeLink>(
        [gloo, &store, prefix = generation.rendezvous(), piece, mark] {
          return std::make_unique<DiesServing>(makeGlooTransport(gloo, store, prefix), piece, mark);
        },
        options.silence);
  };
  return Nodes(std::make_shared<ElasticNodes>(
      std::make_unique<DirectoryStore>(options.store),
      Membership::Options{
          .minNodes = options.minNodes, .silence = options.silence, .patience = options.patience},
      connect));
}

}  // namespace muster::test
