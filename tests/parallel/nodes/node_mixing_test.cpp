// How replicas are mixed over nodes: what is sent, what is allocated, and what fails. `node_exchange_test`
// compares the bits with one process.
#include "muster/parallel/nodes/node_mixing.h"

#include <barrier>

#include "tests/parallel/nodes/on_exchanges.h"
#include "tests/support/allocations.h"
#include "tests/support/test.h"

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

/// Mixes the parameters once, by one thread for each participant. @return [node] what it sends, which its
/// participants' operations count
std::vector<std::int64_t> sentBy(int nodes, int local, std::int64_t elements, const Mixing& mixing) {
  VirtualNetwork network(nodes);
  std::vector<std::int64_t> all;
  onExchanges(network, numbered(elements), {.local = local}, [&](const ExchangeHere& here) {
    std::atomic<std::int64_t> counted = 0;
    runHere(here.exchange, [&](MergeOps& ops) {
      ops.mix(ops.block(BlockKind::Parameters), mixing);
      counted += ops.bytes();
    });
    CHECK(counted == network.bytesSent(here.node));
  });
  for (int n = 0; n < nodes; ++n) all.push_back(network.bytesSent(n));
  return all;
}

/// Connects two nodes of one process, and allocates nothing while they train.
class DirectTransport final : public NodeTransport {
 public:
  struct Open {
    NodeMessage message;
    int ticket;
  };
  struct End {
    std::vector<Open> sends, receives;
    std::vector<int> done;
  };
  struct Hub {
    Hub() {
      for (End& end : ends) {
        end.sends.reserve(256);
        end.receives.reserve(256);
        end.done.reserve(256);
      }
    }
    std::mutex mutex;
    std::array<End, 2> ends;
  };
  DirectTransport(std::shared_ptr<Hub> hub, int node)
      : hub_(std::move(hub)),
        node_(node),
        own_(hub_->ends.at(node == 0 ? 0 : 1)),
        other_(hub_->ends.at(node == 0 ? 1 : 0)) {}

  int node() const override { return node_; }
  int nodes() const override { return 2; }
  std::string host() const override { return fmt::format("direct{}", node_); }
  std::string describe() const override { return "memory"; }
  void begin(const NodeMessage& message, int ticket) override {
    const std::scoped_lock lock(hub_->mutex);
    (message.way == NodeMessage::Way::Send ? own_.sends : own_.receives).push_back({message, ticket});
  }
  void poll(std::vector<int>& done) override {
    const std::scoped_lock lock(hub_->mutex);
    std::erase_if(own_.receives, [&](const Open& receive) {
      const auto send = std::ranges::find(other_.sends, receive.message.channel,
                                          [](const Open& one) { return one.message.channel; });
      if (send == other_.sends.end()) return false;
      std::ranges::copy(send->message.bytes, receive.message.bytes.begin());
      other_.done.push_back(send->ticket);
      own_.done.push_back(receive.ticket);
      other_.sends.erase(send);
      return true;
    });
    done.insert(done.end(), own_.done.begin(), own_.done.end());
    own_.done.clear();
  }

 private:
  const std::shared_ptr<Hub> hub_;
  const int node_;
  End &own_, &other_;
};

}  // namespace

TEST_CASE("a node sends each replica once to each node that reads it, and ops count that") {
  using Bytes = std::vector<std::int64_t>;
  constexpr std::int64_t kElements = 50'000, kBytes = 4 * kElements;
  // Worker w is on node w mod 3: all neighbours on the ring are on other nodes.
  CHECK(sentBy(3, 2, kElements, ring(6)) == Bytes(3, 2 * kBytes));
  // Both workers of node 1 read worker 0, which is sent once.
  Mixing two(4, 4);
  two.setRow(1, std::array{MixingShare{0, 0.5}, MixingShare{1, 0.5}});
  two.setRow(3, std::array{MixingShare{0, 1}});
  CHECK(sentBy(2, 2, kElements, two) == Bytes{kBytes, 0});
  // Rows that read only replicas of their own node.
  Mixing own(4, 8);
  own.setRow(0, std::array{MixingShare{0, 0.25}, MixingShare{2, 0.75}});
  own.shareRow(2, 0);
  own.setRow(3, std::array{MixingShare{1, 0.5}, MixingShare{3, 0.5}});
  CHECK(sentBy(2, 2, kElements, own) == Bytes(2));
  // Half of the replica for the merged copy, half of the mean, and the replica.
  Mixing merged = ring(2);
  merged.setMerged(std::vector<double>{1, 1});
  CHECK(sentBy(2, 1, kElements, merged) == Bytes(2, 2 * kBytes));
}

TEST_CASE("after the first rounds mixing over nodes allocates nothing") {
  const auto hub = std::make_shared<DirectTransport::Hub>();
  constexpr int kRounds = 60, kWarm = 20, kLocal = 2;
  std::barrier together(2 * kLocal + 1);
  Mixing mixing = ring(4);
  mixing.setMerged(std::vector<double>{1, 2, 3, 4});
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
  onExchanges(network, numbered(100'000), {}, [&](const ExchangeHere& here) {
    if (here.node == 1) here.replicas.values(0)[77'777] = std::numeric_limits<float>::max();
    Mixing mixing(2, 2);
    mixing.setRow(0, std::array{MixingShare{0, 1}, MixingShare{1, 2}});
    Context context;
    const auto problem = thrown<Error>([&] {
      here.exchange.begin(here.node);
      for (int round = 0; round < 2; ++round)
        MergeOps(here.exchange, here.node, context).mix(here.exchange.blocks()[0], mixing);
      const std::array<std::byte, 1> own{};
      std::array<std::byte, 2> all{};
      here.exchange.allGather(own, all);
    });
    if (here.node == 0) here.exchange.abort();
    CHECK_CONTAINS(problem, here.node == 0 ? "element 77777 of " : "node 0 (virtual0)");
    if (here.node == 0) CHECK_CONTAINS(problem, " of the parameters");
  });
}

TEST_CASE("a node that becomes silent while replicas are mixed is named") {
  VirtualNetwork network(2);
  onExchanges(network, numbered(200'000), {.silence = 200ms}, [&](const ExchangeHere& here) {
    if (here.node == 1) network.silence(1, 100'000);  // within the second piece
    const auto problem = thrown<NodeFailure>([&] {
      Context context;
      here.exchange.begin(here.node);
      MergeOps ops(here.exchange, here.node, context);
      for (int round = 0; round < 2; ++round) ops.mix(here.exchange.blocks()[0], ring(2));
    });
    CHECK_CONTAINS(problem, here.node == 0 ? "node 1 (virtual1)" : "node 0 (virtual0)");
  });
}
