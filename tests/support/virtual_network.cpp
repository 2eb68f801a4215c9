#include "tests/support/virtual_network.h"

#include <deque>
#include <list>

#include "muster/core/base/mutex.h"

namespace muster {
namespace {

struct Transfer {
  std::vector<std::byte> bytes;
  double arrives = 0;
};

}  // namespace

struct VirtualNetwork::Hub {
  struct Node {
    double now = 0;         // the latest arrival that the node has seen
    double senderFree = 0;  // when its last message was sent
    std::int64_t bytes = 0;
    std::int64_t silentAfter = std::numeric_limits<std::int64_t>::max();
    bool silent = false;
    std::uint64_t arrivals = 0;  // number of messages to it
  };

  Hub(int nodesInAll, Link given)
      : link(given), nodes(static_cast<std::size_t>(nodesInAll)), count(nodesInAll) {}

  const Link link;
  mutable Mutex mutex;
  std::vector<Node> nodes MUSTER_GUARDED_BY(mutex);
  std::map<std::tuple<int, int, int>, std::deque<Transfer>> transfers
      MUSTER_GUARDED_BY(mutex);  // of (from, to, channel)
  std::set<std::pair<int, int>> cut MUSTER_GUARDED_BY(mutex);
  bool held MUSTER_GUARDED_BY(mutex) = false;
  const int count;  // of nodes

  Node& of(int node) MUSTER_REQUIRES(mutex) { return nodes[static_cast<std::size_t>(node)]; }

  void send(int from, const NodeMessage& message) {
    const Lock lock(mutex);
    Node& sender = of(from);
    sender.silent = sender.silent || (message.channel > 0 && sender.bytes >= sender.silentAfter);
    if (sender.silent || cut.contains({from, message.node})) return;
    Transfer transfer{{message.bytes.begin(), message.bytes.end()}, 0};
    if (message.channel > 0) {
      sender.senderFree = std::max(sender.now, sender.senderFree) +
                          static_cast<double>(transfer.bytes.size()) / link.bytesPerSecond;
      sender.bytes += static_cast<std::int64_t>(transfer.bytes.size());
      transfer.arrives = sender.senderFree + link.latency;
    }
    transfers[{from, message.node, message.channel}].push_back(std::move(transfer));
    ++of(message.node).arrivals;
  }

  std::uint64_t arrivals(int node) {
    const Lock lock(mutex);
    return of(node).arrivals;
  }

  bool receive(int to, const NodeMessage& message) {
    const Lock lock(mutex);
    if (held && message.channel > 2) return false;
    const auto queue = transfers.find({message.node, to, message.channel});
    if (queue == transfers.end() || queue->second.empty()) return false;
    const Transfer transfer = std::move(queue->second.front());
    queue->second.pop_front();
    if (transfer.bytes.size() != message.bytes.size())
      throw NodeFailure(fmt::format("node {} has sent {} bytes where {} were expected", message.node,
                                    transfer.bytes.size(), message.bytes.size()));
    std::ranges::copy(transfer.bytes, message.bytes.begin());
    of(to).now = std::max(of(to).now, transfer.arrives);
    return true;
  }
};

class VirtualNetwork::End final : public NodeTransport {
 public:
  End(std::shared_ptr<Hub> hub, int node) : hub_(std::move(hub)), node_(node) {}

  int node() const override { return node_; }
  int nodes() const override { return hub_->count; }
  std::string host() const override { return fmt::format("virtual{}", node_); }
  std::string describe() const override { return "a virtual network"; }
  void begin(const NodeMessage& message, int ticket) override {
    if (message.way == NodeMessage::Way::Receive) {
      open_.push_back({message, ticket});
      begun_ = true;
      return;
    }
    hub_->send(node_, message);
    sent_.push_back(ticket);
  }
  void poll(std::vector<int>& done) override {
    done.insert(done.end(), sent_.begin(), sent_.end());
    sent_.clear();
    // With hundreds of nodes, most polls find no new message.
    const std::uint64_t arrivals = hub_->arrivals(node_);
    if (!std::exchange(begun_, false) && std::exchange(seen_, arrivals) == arrivals) return;
    seen_ = arrivals;
    std::set<std::pair<int, int>> waiting;  // later messages of a channel wait for earlier ones
    for (auto at = open_.begin(); at != open_.end();) {
      const std::pair from{at->message.node, at->message.channel};
      if (!waiting.contains(from) && hub_->receive(node_, at->message)) {
        done.push_back(at->ticket);
        at = open_.erase(at);
      } else {
        waiting.insert(from);
        ++at;
      }
    }
  }

 private:
  struct Open {
    NodeMessage message;
    int ticket;
  };
  const std::shared_ptr<Hub> hub_;
  const int node_;
  std::list<Open> open_;
  std::vector<int> sent_;
  std::uint64_t seen_ = 0;  // arrivals at the last poll
  bool begun_ = false;      // whether waiting began since then
};

VirtualNetwork::VirtualNetwork(int nodes) : VirtualNetwork(nodes, Link{}) {}

VirtualNetwork::VirtualNetwork(int nodes, Link link) : hub_(std::make_shared<Hub>(std::max(nodes, 0), link)) {
  require(nodes >= 1, "virtual network: it needs at least 1 node, got {}", nodes);
  require(link.bytesPerSecond > 0 && link.latency >= 0,
          "virtual network: {} bytes a second and a latency of {} s cannot be", link.bytesPerSecond,
          link.latency);
}

VirtualNetwork::~VirtualNetwork() = default;

int VirtualNetwork::nodes() const {
  return hub_->count;
}

std::unique_ptr<NodeTransport> VirtualNetwork::transport(int node) {
  require(node >= 0 && node < nodes(), "virtual network: there is no node {} among {}", node, nodes());
  return std::make_unique<End>(hub_, node);
}

void VirtualNetwork::silence(int node, std::int64_t afterBytes) {
  const Lock lock(hub_->mutex);
  hub_->of(node).silentAfter = afterBytes;
  hub_->of(node).silent = afterBytes == 0;
}

void VirtualNetwork::hold() {
  const Lock lock(hub_->mutex);
  hub_->held = true;
}

void VirtualNetwork::release() {
  const Lock lock(hub_->mutex);
  hub_->held = false;
  for (auto& node : hub_->nodes) ++node.arrivals;
}

void VirtualNetwork::cut(int one, int other) {
  const Lock lock(hub_->mutex);
  hub_->cut.insert({one, other});
  hub_->cut.insert({other, one});
}

std::int64_t VirtualNetwork::bytesSent(int node) const {
  const Lock lock(hub_->mutex);
  return hub_->of(node).bytes;
}

double VirtualNetwork::seconds() const {
  const Lock lock(hub_->mutex);
  return std::ranges::max_element(hub_->nodes, {}, &Hub::Node::now)->now;
}

}  // namespace muster
