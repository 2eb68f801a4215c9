#include <utility>

#include "muster/core/base/host_name.h"
#include "muster/core/base/process_name.h"
#include "muster/parallel/nodes/elastic/directory_store.h"
#include "muster/parallel/nodes/elastic/elastic_nodes.h"
#include "muster/parallel/nodes/gloo/gloo_transport.h"
#include "muster/parallel/nodes/gloo/redis_store.h"

namespace muster {
namespace {

std::unique_ptr<NodeStore> openStore(const std::string& store) {
  require(!store.empty(), "Gloo: store: name a directory that all nodes can reach, or a Redis server");
  if (store.starts_with("redis:")) return openRedisStore(store);
  require(store.find("://") == std::string::npos,
          "Gloo: store: {} is neither a directory nor redis://host:port/name", store);
  return std::make_unique<DirectoryStore>(store);
}

}  // namespace

Nodes Nodes::gloo(const Gloo& options) {
  require(options.nodes >= 1, "Gloo: nodes must be at least 1, got {}", options.nodes);
  require(options.node >= 0 && options.node < options.nodes, "Gloo: there is no node {} among {}",
          options.node, options.nodes);
  if (!options.store.empty()) requireInterface(options.interface);
  const auto store = std::shared_ptr(openStore(options.store));
  Nodes nodes([options, store] { return makeGlooTransport(options, *store, ""); }, options.silence);
  if (const NodeLink* const link = nodes.link()) setProcessName(link->nameOf(link->node()));
  return nodes;
}

Nodes Nodes::elastic(const Elastic& options) {
  require(options.minNodes >= 1, "elastic: minNodes must be at least 1, got {}", options.minNodes);
  require(options.silence >= std::chrono::milliseconds(100),
          "elastic: silence must be at least 100 ms, got {}", options.silence.count());
  require(options.patience.count() >= 0, "elastic: patience cannot be negative, got {} ms",
          options.patience.count());
  if (!options.store.empty()) requireInterface(options.interface);
  auto store = openStore(options.store);
  const auto connect = [options](NodeStore& shared,
                                 const Generation& generation) -> std::shared_ptr<NodeLink> {
    setProcessName(nodeName(generation.node, hostName()));
    if (generation.members.size() == 1) return nullptr;
    const Gloo gloo{.node = generation.node,
                    .nodes = static_cast<int>(generation.members.size()),
                    .interface = options.interface,
                    .silence = options.silence,
                    .patience = options.silence};
    return std::make_shared<NodeLink>(
        [gloo, &shared, prefix = generation.rendezvous()] { return makeGlooTransport(gloo, shared, prefix); },
        options.silence);
  };
  return Nodes(std::make_shared<ElasticNodes>(
      std::move(store),
      Membership::Options{
          .minNodes = options.minNodes, .silence = options.silence, .patience = options.patience},
      connect));
}

}  // namespace muster
