#include "muster/parallel/nodes/gloo/gloo_transport.h"

#include <ifaddrs.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <ranges>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/ranges.h>
#include <gloo/transport/tcp/device.h>

#include "muster/core/base/host_name.h"
#include "muster/core/base/start_thread.h"
#include "muster/parallel/nodes/gloo/message_queue.h"
#include "muster/parallel/nodes/gloo/no_sigpipe.h"
#include "muster/parallel/nodes/gloo/pair_connection.h"
#include "muster/parallel/nodes/gloo/rendezvous.h"

namespace muster {
namespace {

/// The network interfaces that have an address, and whether they have an IPv4 address.
std::map<std::string, bool> interfacesHere() {
  std::map<std::string, bool> all;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return all;
  for (const ifaddrs* one = first; one; one = one->ifa_next) {
    const int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;
    if (family == AF_INET || family == AF_INET6) all[one->ifa_name] |= family == AF_INET;
  }
  freeifaddrs(first);
  return all;
}

/// The address family on which to listen; all nodes must use the same.
int addressFamily(const std::string& interface) {
  return interfacesHere().at(interface) ? AF_INET : AF_INET6;
}

class GlooTransport final : public NodeTransport {
 public:
  GlooTransport(const Nodes::Gloo& options, NodeStore& store, const std::string& prefix)
      : node_(options.node),
        interface_(options.interface),
        rendezvous_(std::make_unique<Rendezvous>(store, prefix, node_, options.nodes)),
        peers_(static_cast<std::size_t>(options.nodes)) {
    blockSigpipe();
    gloo::transport::tcp::attr attributes;
    attributes.iface = interface_;
    attributes.ai_family = addressFamily(interface_);
    try {
      device_ = gloo::transport::tcp::CreateDevice(attributes);
    } catch (const std::exception& error) {
      throw NodeFailure(fmt::format("Gloo: the network interface {}: {}", interface_, error.what()));
    }
    connect(store, prefix, options);
  }
  GlooTransport(const GlooTransport&) = delete;
  GlooTransport& operator=(const GlooTransport&) = delete;
  int node() const override { return node_; }
  int nodes() const override { return static_cast<int>(peers_.size()); }
  std::string host() const override { return hostName(); }
  std::string describe() const override { return "Gloo (" + interface_ + ")"; }

  void begin(const NodeMessage& message, int ticket) override {
    require(message.bytes.size() <= std::numeric_limits<std::int32_t>::max(), "Gloo: a message of {} bytes",
            message.bytes.size());
    if (peer(message.node).lost) return;  // never done
    auto& queue = queues_[{message.node, message.channel, message.way}];
    if (!queue) queue = std::make_unique<MessageQueue>(peer(message.node).pair, outcomes_);
    try {
      queue->begin(message, ticket);
    } catch (const std::exception& error) {
      lose(message.node, error.what());
    }
  }

  void poll(std::vector<int>& done) override {
    if (outcomes_.take(done, [this](int node) { hear(node); }))
      return;  // a lost node's last messages come first
    while (const auto loss = outcomes_.nextLoss())
      if (!peer(loss->node).lost) lose(loss->node, loss->why);
  }

  bool onNews(std::function<void()> news) override {
    outcomes_.onNews(std::move(news));
    return true;
  }

 private:
  struct Peer {
    bool lost = false, heard = false;
    std::shared_ptr<gloo::transport::Context> pair;  // of this one connection
    std::string problem;                             // in connecting
  };
  Peer& peer(int node) { return peers_[static_cast<std::size_t>(node)]; }

  void connect(NodeStore& store, const std::string& prefix, const Nodes::Gloo& options) {
    const PairMeeting meeting{.store = store,
                              .prefix = prefix,
                              .word = rendezvous_->awaitAll(options.patience),
                              .node = node_,
                              .nodes = nodes()};
    // Connect to all at once: each call waits for the other side, and a silent node would delay the rest.
    std::vector<std::jthread> calls;
    for (int n = 0; n < nodes(); ++n)
      if (n != node_)
        calls.push_back(startThread("a connection", [&, n](const std::stop_token&) {
          try {
            peer(n).pair = connectPair(*device_, meeting, n, options.silence);
          } catch (const std::exception& error) {
            peer(n).problem = wordsOfGloo(error.what());
          }
        }));
    calls.clear();
    std::vector<int> missing;
    std::string text;
    for (int n = 0; n < nodes(); ++n) {
      if (peer(n).problem.empty()) continue;
      text += fmt::format("{}node {} cannot be reached ({})", missing.empty() ? "Gloo: " : "; ", n,
                          peer(n).problem);
      missing.push_back(n);
    }
    if (!missing.empty()) throw NotConnected(std::move(missing), text);
  }

  /// A node that sends messages has found all others.
  void hear(int node) {
    peer(node).heard = true;
    if (std::ranges::count(peers_, true, &Peer::heard) == nodes() - 1) rendezvous_.reset();
  }

  [[noreturn]] void lose(int node, std::string_view why) {
    peer(node).lost = true;
    throw NodeLost(node, fmt::format("the connection is broken ({})", wordsOfGloo(why)));
  }

  const int node_;
  const std::string interface_;
  std::unique_ptr<Rendezvous> rendezvous_;  // until all nodes have sent something
  std::shared_ptr<gloo::transport::Device> device_;
  std::vector<Peer> peers_;  // [node]
  Outcomes outcomes_;
  std::map<std::tuple<int, int, NodeMessage::Way>, std::unique_ptr<MessageQueue>> queues_;
};

}  // namespace

void requireInterface(const std::string& interface) {
  const auto interfaces = interfacesHere();
  const auto known = fmt::format("{}", fmt::join(std::views::keys(interfaces), ", "));
  require(!interface.empty(), "Gloo: interface: name the network interface to listen on; this machine has {}",
          known);
  require(interfaces.contains(interface),
          "Gloo: interface: there is no {} with an address here; this machine has {}", interface, known);
}

std::unique_ptr<NodeTransport> makeGlooTransport(const Nodes::Gloo& options, NodeStore& store,
                                                 const std::string& prefix) {
  return std::make_unique<GlooTransport>(options, store, prefix);
}

}  // namespace muster
