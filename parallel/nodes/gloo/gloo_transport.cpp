#include "muster/parallel/nodes/gloo/gloo_transport.h"

#include <ifaddrs.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <ranges>
#include <string>
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
        nodes_(options.nodes),
        interface_(options.interface),
        lost_(static_cast<std::size_t>(options.nodes)),
        heard_(static_cast<std::size_t>(options.nodes)),
        rendezvous_(std::make_unique<Rendezvous>(store, prefix, node_, nodes_)),
        pairs_(static_cast<std::size_t>(options.nodes)) {
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
  int nodes() const override { return nodes_; }
  std::string host() const override { return hostName(); }
  std::string describe() const override { return "Gloo (" + interface_ + ")"; }

  void begin(const NodeMessage& message, int ticket) override {
    require(message.bytes.size() <= std::numeric_limits<std::int32_t>::max(), "Gloo: a message of {} bytes",
            message.bytes.size());
    if (lost_[static_cast<std::size_t>(message.node)]) return;  // never done
    auto& queue = queues_[{message.node, message.channel, message.way}];
    if (!queue)
      queue = std::make_unique<MessageQueue>(pairs_[static_cast<std::size_t>(message.node)], outcomes_);
    try {
      queue->begin(message, ticket);
    } catch (const std::exception& error) {
      lose(message.node, error.what());
    }
  }

  void poll(std::vector<int>& done) override {
    if (outcomes_.take(done, [this](int node) { hear(node); }))
      return;  // a lost node's last messages come first
    for (auto& loss : outcomes_.losses()) losses_.push_back(std::move(loss));
    while (!losses_.empty()) {
      const auto [node, why] = std::move(losses_.front());
      losses_.pop_front();
      if (!lost_[static_cast<std::size_t>(node)]) lose(node, why);
    }
  }

  bool onNews(std::function<void()> news) override {
    outcomes_.onNews(std::move(news));
    return true;
  }

 private:
  void connect(NodeStore& store, const std::string& prefix, const Nodes::Gloo& options) {
    const PairMeeting meeting{.store = store,
                              .prefix = prefix,
                              .word = rendezvous_->awaitAll(options.patience),
                              .node = node_,
                              .nodes = nodes_};
    // Connect to all at once: each call waits for the other side, and a silent node would delay the rest.
    std::vector<std::string> problems(static_cast<std::size_t>(nodes_));
    {
      std::vector<std::jthread> calls;
      for (int n = 0; n < nodes_; ++n) {
        if (n == node_) continue;
        const auto node = static_cast<std::size_t>(n);
        calls.push_back(startThread("a connection", [&, n, node](const std::stop_token&) {
          try {
            pairs_[node] = connectPair(*device_, meeting, n, options.silence);
          } catch (const std::exception& error) {
            problems[node] = error.what();
          }
        }));
      }
    }
    std::vector<int> missing;
    std::string text;
    for (int n = 0; n < nodes_; ++n) {
      const auto& why = problems[static_cast<std::size_t>(n)];
      if (why.empty()) continue;
      missing.push_back(n);
      text += fmt::format("{}node {} cannot be reached ({})", text.empty() ? "Gloo: " : "; ", n,
                          wordsOfGloo(why));
    }
    if (!missing.empty()) throw NotConnected(std::move(missing), text);
  }

  /// A node that sends messages has found all others.
  void hear(int node) {
    if (!rendezvous_) return;
    heard_[static_cast<std::size_t>(node)] = 1;
    if (std::ranges::count(heard_, 1) == nodes_ - 1) rendezvous_.reset();
  }

  [[noreturn]] void lose(int node, std::string_view why) {
    lost_[static_cast<std::size_t>(node)] = 1;
    throw NodeLost(node, fmt::format("the connection is broken ({})", wordsOfGloo(why)));
  }

  const int node_, nodes_;
  const std::string interface_;
  std::vector<char> lost_, heard_;          // [node]
  std::unique_ptr<Rendezvous> rendezvous_;  // until all nodes have sent something
  std::shared_ptr<gloo::transport::Device> device_;
  std::vector<std::shared_ptr<gloo::transport::Context>> pairs_;  // [node] of one connection each
  Outcomes outcomes_;
  std::deque<Outcomes::Loss> losses_;  // not reported yet
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
