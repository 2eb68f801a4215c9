// How replicas are mixed over nodes: what is sent, what is allocated, and what fails. `node_exchange_test`
// compares the bits with one process.
#include "muster/parallel/nodes/node_mixing.h"

#include <barrier>
#include <limits>

#include "muster/core/ops/non_finite.h"
#include "tests/parallel/nodes/on_exchanges.h"
#include "tests/support/allocations.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

/// Replicas whose parameters hold the worker's number, and statistics.
MakeReplicas numbered(std::int64_t elements) {
  return [elements](const std::vector<int>& workers) {
    return Replicas(workers,
                    {{"parameters", BlockKind::Parameters, MergeRule::Average, elements},
                     {"statistics", BlockKind::Statistics, MergeRule::Moments, elements}},
                    [](int w, std::size_t b, std::int64_t) { return b == 0 ? w : 0; });
  };
}

/// Each worker is mixed with the one before it.
Mixing ring(std::size_t workers) {
  Mixing mixing(workers, 2 * workers);
  for (std::size_t w = 0; w < workers; ++w) {
    std::vector<MixingShare> row = {{w, 0.5}, {(w + workers - 1) % workers, 0.5}};
    if (row[0].worker > row[1].worker) std::swap(row[0], row[1]);
    mixing.setRow(w, row);
  }
  return mixing;
}

struct Sent {
  std::int64_t counted = 0;  // by the operations of all participants of a node
  std::int64_t sent = 0;     // by the node
};

/// Mixes the parameters once, by one thread for each participant. @return [node]
std::vector<Sent> mixOnce(int nodes, int local, std::int64_t elements, const Mixing& mixing) {
  VirtualNetwork network(nodes);
  std::vector<Sent> all(static_cast<std::size_t>(nodes));
  onExchanges(network, numbered(elements), {.local = local}, [&](const ExchangeHere& here) {
    std::mutex mutex;
    runHere(here.exchange, [&](MergeOps& ops) {
      ops.mix(ops.block(BlockKind::Parameters), mixing);
      const std::scoped_lock lock(mutex);
      all[static_cast<std::size_t>(here.node)].counted += ops.bytes();
    });
  });
  for (int n = 0; n < nodes; ++n) all[static_cast<std::size_t>(n)].sent = network.bytesSent(n);
  return all;
}

/// Connects two nodes of one process, and allocates nothing while they train.
class DirectTransport final : public NodeTransport {
 public:
  struct Hub {
    struct Open {
      NodeMessage message;
      int ticket;
    };
    struct Node {
      std::vector<Open> sends, receives;
      std::vector<int> done;
    };
    Hub() {
      for (Node& node : nodes) {
        node.sends.reserve(256);
        node.receives.reserve(256);
        node.done.reserve(256);
      }
    }
    std::mutex mutex;
    std::array<Node, 2> nodes;
  };
  DirectTransport(std::shared_ptr<Hub> hub, int node) : hub_(std::move(hub)), node_(node) {}

  int node() const override { return node_; }
  int nodes() const override { return 2; }
  std::string host() const override { return fmt::format("direct{}", node_); }
  std::string describe() const override { return "memory"; }
  void begin(const NodeMessage& message, int ticket) override {
    const std::scoped_lock lock(hub_->mutex);
    (message.way == NodeMessage::Way::Send ? own().sends : own().receives).push_back({message, ticket});
  }
  void poll(std::vector<int>& done) override {
    const std::scoped_lock lock(hub_->mutex);
    auto& sends = other().sends;
    std::erase_if(own().receives, [&](const Hub::Open& receive) {
      const auto send = std::ranges::find_if(
          sends, [&](const Hub::Open& one) { return one.message.channel == receive.message.channel; });
      if (send == sends.end()) return false;
      std::ranges::copy(send->message.bytes, receive.message.bytes.begin());
      other().done.push_back(send->ticket);
      own().done.push_back(receive.ticket);
      sends.erase(send);
      return true;
    });
    done.insert(done.end(), own().done.begin(), own().done.end());
    own().done.clear();
  }

 private:
  Hub::Node& own() const { return hub_->nodes[static_cast<std::size_t>(node_)]; }
  Hub::Node& other() const { return hub_->nodes[static_cast<std::size_t>(1 - node_)]; }

  const std::shared_ptr<Hub> hub_;
  const int node_;
};

}  // namespace

TEST_CASE("a node sends each replica once to each node that reads it, and ops count that") {
  constexpr std::int64_t kElements = 50'000, kBytes = 4 * kElements;
  // Worker w is on node w mod 3: all neighbours on the ring are on other nodes.
  for (const Sent& node : mixOnce(3, 2, kElements, ring(6))) {
    CHECK(node.counted == 2 * kBytes);
    CHECK(node.sent == node.counted);
  }
  // Both workers of node 1 read worker 0, which is sent once.
  Mixing two(4, 4);
  const std::array row = {MixingShare{0, 0.5}, MixingShare{1, 0.5}};
  two.setRow(1, row);
  two.setRow(3, std::array{MixingShare{0, 1}});
  const auto sent = mixOnce(2, 2, kElements, two);
  CHECK(sent[0].counted == kBytes);
  CHECK(sent[0].sent == kBytes);
  CHECK(sent[1].sent == 0);
  CHECK(sent[1].counted == 0);
}

TEST_CASE("rows that read only replicas of their own node send nothing") {
  Mixing mixing(4, 8);
  const std::array even = {MixingShare{0, 0.25}, MixingShare{2, 0.75}},
                   odd = {MixingShare{1, 0.5}, MixingShare{3, 0.5}};
  mixing.setRow(0, even);
  mixing.shareRow(2, 0);
  mixing.setRow(3, odd);
  for (const Sent& node : mixOnce(2, 2, 50'000, mixing)) {
    CHECK(node.sent == 0);
    CHECK(node.counted == 0);
  }
}

TEST_CASE("the merged copy over nodes is sent, and counted once") {
  Mixing mixing = ring(2);
  mixing.setMerged(std::vector<double>{1, 1});
  for (const Sent& node : mixOnce(2, 1, 40'000, mixing)) {
    CHECK(node.counted == 2 * 160'000);
    CHECK(node.sent == 2 * 160'000);  // half of the replica for the mean, half of the mean, and the replica
  }
}

TEST_CASE("after the first rounds mixing over nodes allocates nothing") {
  const auto hub = std::make_shared<DirectTransport::Hub>();
  constexpr int kRounds = 60, kWarm = 20, kLocal = 2;
  std::barrier together(2 * kLocal + 1);
  const auto mixing = [] {
    Mixing all = ring(4);
    all.setMerged(std::vector<double>{1, 2, 3, 4});
    return all;
  }();
  std::vector<std::jthread> nodes;
  for (int n = 0; n < 2; ++n)
    nodes.emplace_back([&, n] {
      const Replicas replicas = numbered(40'000)({n, 2 + n});
      NodeLink link([&hub, n] { return std::make_unique<DirectTransport>(hub, n); }, 30s);
      NodeExchange exchange(replicas.states, UpdaterState::Average, link);
      exchange.restart();
      std::vector<std::jthread> workers;
      for (int l = 0; l < kLocal; ++l)
        workers.emplace_back([&, l] {
          Context context;
          for (int round = 0; round < kRounds; ++round) {
            exchange.begin(2 * l + n);
            MergeOps(exchange, 2 * l + n, context).mixState(mixing);
            if (round == kWarm - 1 || round == kRounds - 1) {
              together.arrive_and_wait();
              together.arrive_and_wait();  // the counter is read between the two
            }
          }
        });
    });
  std::array<long, 2> counted{};
  for (long& now : counted) {
    together.arrive_and_wait();
    now = allocations();
    together.arrive_and_wait();
  }
  nodes.clear();
  CHECK(counted[1] - counted[0] == 0);
}

TEST_CASE("a row that would overflow is refused on its node, and the other node hears of it") {
  VirtualNetwork network(2);
  std::array<std::string, 2> problems;
  onExchanges(network, numbered(100'000), {}, [&](const ExchangeHere& here) {
    auto& problem = problems.at(static_cast<std::size_t>(here.node));
    if (here.node == 1) here.replicas.values(0)[77'777] = std::numeric_limits<float>::max();
    Mixing mixing(2, 2);
    mixing.setRow(0, std::array{MixingShare{0, 1}, MixingShare{1, 2}});
    Context context;
    try {
      here.exchange.begin(here.node);
      for (int round = 0; round < 2; ++round)
        MergeOps(here.exchange, here.node, context).mix(here.exchange.blocks()[0], mixing);
      const std::array<std::byte, 1> own{};
      std::array<std::byte, 2> all{};
      here.exchange.allGather(own, all);
    } catch (const NodeFailure& failure) {
      problem = failure.what();
    } catch (const NonFiniteScore& error) {
      problem = error.what();
      here.exchange.abort();
    }
  });
  CAPTURE(problems[0]);
  CHECK(problems[0].find("element 77777 of ") != std::string::npos);
  CHECK(problems[0].find(" of the parameters") != std::string::npos);
  CHECK(problems[1].find("node 0 (virtual0)") != std::string::npos);
}

TEST_CASE("a node that becomes silent while replicas are mixed is named") {
  VirtualNetwork network(2);
  std::array<std::string, 2> problems;
  onExchanges(network, numbered(200'000), {.silence = 200ms}, [&](const ExchangeHere& here) {
    if (here.node == 1) network.silence(1, 100'000);  // within the second piece
    problems.at(static_cast<std::size_t>(here.node)) = thrown<NodeFailure>([&] {
      Context context;
      here.exchange.begin(here.node);
      MergeOps ops(here.exchange, here.node, context);
      for (int round = 0; round < 2; ++round) ops.mix(here.exchange.blocks()[0], ring(2));
    });
  });
  CHECK(problems[0].find("node 1 (virtual1)") != std::string::npos);
  CHECK(problems[1].find("node 0 (virtual0)") != std::string::npos);
}
