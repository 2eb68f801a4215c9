#include "muster/parallel/nodes/node_exchange.h"

#include <barrier>
#include <semaphore>

#include "muster/core/base/random.h"
#include "muster/parallel/exchange/host_exchange.h"
#include "tests/parallel/nodes/on_exchanges.h"
#include "tests/support/arrays.h"
#include "tests/support/texts.h"

using namespace muster;
using namespace std::chrono_literals;
using namespace muster::test;

namespace {

/// Replicas with random values that depend only on the worker's number.
Replicas replicasOf(const std::vector<int>& workers, std::int64_t elements) {
  auto blocks = blocksOfEachKind(elements);
  blocks.push_back({"statistics", BlockKind::Statistics, MergeRule::Moments, 2 * (elements / 7)});
  return Replicas(workers, blocks, [&](int w, std::size_t b, std::int64_t i) {
    const RandomStream random(static_cast<std::uint64_t>(w), "values", static_cast<int>(b));
    const double value = 2 * random.uniform(static_cast<std::uint64_t>(i)) - 1;
    return b == 5 && i >= elements / 7 ? std::abs(value) : value;  // a variance
  });
}

MakeReplicas ofSize(std::int64_t elements) {
  return [elements](const std::vector<int>& workers) { return replicasOf(workers, elements); };
}

/// The work of each participant of an exchange.
using Work = std::function<void(MergeOps&)>;

const std::vector<StrategyBlock> kBlocks = {{.name = "mean", .dtype = DType::Float64},
                                            {.name = "centre", .start = StrategyBlock::Start::Parameters},
                                            {.name = "sent", .place = StrategyBlock::Place::Replica}};

/// Launches the mean of the parameters of two replicas of 100 elements, into the block "arriving".
void launchMean(MergeOps& ops) {
  ops.mean(ops.block(BlockKind::Parameters).replicas, std::vector{0.5, 0.5}, ops.own("arriving"),
           Fragment::whole(100), /*keep=*/0, /*later=*/true);
}

/// Does the work in groups in one process and over nodes, and compares every bit of every replica, merged
/// copy and block.
void checkSame(int nodes, int local, std::int64_t elements, const Work& work) {
  CAPTURE(nodes);
  CAPTURE(local);
  CAPTURE(elements);
  Replicas together = replicasOf(firstWorkers(nodes * local), elements);
  HostExchange host(together.states, UpdaterState::Average, nodes);
  host.makeStrategyBlocks(kBlocks);
  runHere(host, work);
  VirtualNetwork network(nodes);
  std::vector<char> same(static_cast<std::size_t>(nodes), 1);
  onExchanges(network, ofSize(elements), {.local = local, .blocks = kBlocks}, [&](const ExchangeHere& here) {
    const NodeExchange& exchange = here.exchange;
    runHere(here.exchange, work);
    const auto compare = [&](const Tensor& mine, const Tensor& theirs) {
      if (!sameBits(mine, theirs)) same[static_cast<std::size_t>(here.node)] = 0;
    };
    for (std::size_t b = 0; b < host.blocks().size(); ++b) {
      const auto &mine = exchange.blocks()[b], &theirs = host.blocks()[b];
      for (int w = here.node; w < nodes * local; w += nodes)
        compare(mine.replicas[static_cast<std::size_t>(w)], theirs.replicas[static_cast<std::size_t>(w)]);
      if (theirs.hasMergedCopy()) compare(mine.mergedCopy(), theirs.mergedCopy());
    }
    for (const auto& block : kBlocks)
      for (int w = here.node; w < nodes * local; w += nodes)
        compare(exchange.strategyBlock(block.name).values[static_cast<std::size_t>(w)],
                host.strategyBlock(block.name).values[static_cast<std::size_t>(w)]);
  });
  CHECK(same == std::vector<char>(same.size(), 1));
}

std::vector<double> weightsOf(const MergeOps& ops, int without = -1) {
  std::vector<double> weights;
  for (int w = 0; w < ops.participants(); ++w) weights.push_back(w == without ? 0 : 1 + 0.7 * w);
  return weights;
}

struct Shape2 {
  int nodes, local;
};
constexpr std::array kShapes{Shape2{1, 2}, Shape2{2, 1}, Shape2{2, 2}, Shape2{3, 1}, Shape2{3, 2}};
// The largest size has several pieces for each participant and node.
constexpr std::array<std::int64_t, 5> kSizes{0, 5, 97, 4099, 150'001};

}  // namespace

TEST_CASE("a merge of all state over nodes has the bits of one host that adds up in groups") {
  for (const auto [nodes, local] : kShapes)
    for (const auto elements : kSizes)
      checkSame(nodes, local, elements, [](MergeOps& ops) {
        const auto weights = weightsOf(ops);
        ops.mergeState(weights);
        ops.merge(ops.block(BlockKind::Gradients), weights);
      });
}

TEST_CASE("a merge without some workers, or without a whole node, has the bits of one host") {
  for (const auto [nodes, local] : kShapes)
    for (int without = 0; without < nodes * local; ++without)
      checkSame(nodes, local, 1000, [&](MergeOps& ops) {
        if (ops.participants() > 1) ops.mergeState(weightsOf(ops, without));
        std::vector<double> alone(static_cast<std::size_t>(ops.participants()));
        alone[static_cast<std::size_t>(without)] = 3;
        ops.merge(ops.block(BlockKind::Gradients), alone);
      });
}

TEST_CASE("means into blocks, of fragments, with an old share, and later ops have the bits of one host") {
  for (const auto [nodes, local] : kShapes)
    checkSame(nodes, local, 70'001, [](MergeOps& ops) {
      const auto weights = weightsOf(ops);
      const SharedBlock& parameters = ops.block(BlockKind::Parameters);
      const Fragment all = Fragment::whole(parameters.mergedCopy().elements());
      const Fragment some{{{16, 5000}, {6001, 69'000}}};
      ops.combine(ops.own("sent"), {{0.5, parameters.replicas}}, all);
      ops.mean(ops.own("sent"), weights, ops.own("mean"), all);
      ops.mean(parameters.replicas, weights, ops.own("centre"), some, /*keep=*/0.25);
      ops.combine(ops.own("centre"), {{0.7, ops.own("centre")}, {0.3, ops.own("mean")}}, all);
      ops.writeBack(ops.own("centre"), parameters.replicas, 0.4, some);
      ops.eachReplica(all.elements(), [&](const Share& share) {
        for (const std::size_t w : share.workers)
          parameters.replicas[w].data<float>()[0] += static_cast<float>(w);
      });
      ops.mergeOthers(weights);
    });
}

namespace {

/// Rows of several kinds by turns: a mixture of all, an unchanged replica, a copy, a row that is shared with
/// the worker before, and a mixture with the next worker.
Mixing rowsOf(int workers, bool merged) {
  const auto count = static_cast<std::size_t>(workers);
  Mixing mixing(count, count * count);
  for (std::size_t w = 0; w < count; ++w) {
    std::vector<MixingShare> row;
    if (w % 5 == 0)
      for (std::size_t j = 0; j < count; ++j)
        row.push_back({j, 0.1 + 0.3 * static_cast<double>((3 * w + j) % 4)});
    if (w % 5 == 2) row.push_back({(w + 1) % count, 1});
    if (w % 5 == 4) {
      row = {{w, 0.3}, {(w + 1) % count, 0.7}};
      std::ranges::sort(row, {}, &MixingShare::worker);
    }
    if (!row.empty()) mixing.setRow(w, row);
    if (w % 5 == 3) mixing.shareRow(w, w - 1);
  }
  std::vector<double> weights(count);
  for (std::size_t w = 0; w < count; ++w) weights[w] = w == 1 ? 0 : 1 + 0.7 * static_cast<double>(w);
  if (merged) mixing.setMerged(weights);
  return mixing;
}

}  // namespace

TEST_CASE("mixing with and without a merged copy, and later ops have the bits of one host") {
  for (const bool merged : {true, false})
    for (const auto [nodes, local] : kShapes)
      for (const auto elements : kSizes)
        checkSame(nodes, local, elements, [merged](MergeOps& ops) {
          const Mixing mixing = rowsOf(ops.participants(), merged);
          ops.mixState(mixing);
          ops.mix(ops.block(BlockKind::Gradients), mixing);
          ops.mergeOthers(weightsOf(ops));
          ops.mixState(mixing);
        });
  // So many replicas of other nodes are read that a piece is shorter.
  checkSame(4, 5, 150'001, [](MergeOps& ops) { ops.mixState(rowsOf(ops.participants(), true)); });
}

TEST_CASE("sums over shares, and replicas brought to other workers have the bits of one host") {
  for (const auto [nodes, local] : kShapes)
    for (const auto elements : kSizes)
      checkSame(nodes, local, elements, [](MergeOps& ops) {
        const SharedBlock& parameters = ops.block(BlockKind::Parameters);
        const Fragment all = Fragment::whole(parameters.mergedCopy().elements());
        const auto last = static_cast<std::size_t>(ops.participants()) - 1;
        ops.mean(parameters.replicas, weightsOf(ops), ops.own("mean"), all);
        for (const std::size_t to : {std::size_t{0}, last / 2}) {
          double sum = 0;
          const Tensor other =
              ops.fetch(ops.block(BlockKind::Gradients).replicas, last, to, ops.own("centre"));
          ops.eachShare(all.elements(), [&](const Share& share) {
            if (std::ranges::find(share.workers, to) == share.workers.end()) return;
            double ofShare = 0;
            for (std::int64_t i = share.slice.begin; i < share.slice.end; ++i)
              ofShare += static_cast<double>(other.data<float>()[i]) / 3;
            sum += ofShare;
          });
          std::array sums{sum, 1.0};
          ops.allReduce(sums);
          CHECK(sums[1] == ops.participants());
          ops.combine(ops.own("mean"), {{sums[0], ops.own("mean")}}, all);  // float64: keeps its bits
        }
        ops.combine(ops.own("centre"), {}, all);
      });
}

TEST_CASE("all nodes get the messages of all participants, of different lengths, also empty ones") {
  struct Texts final : Messages {
    explicit Texts(std::size_t workers) : sizes(workers), all(workers, std::vector<unsigned char>(200'000)) {}
    std::span<std::byte> head(std::size_t w) override {
      return std::as_writable_bytes(std::span(sizes).subspan(w, 1));
    }
    std::span<std::byte> body(std::size_t w) override {
      return std::as_writable_bytes(std::span(all[w]).first(sizes[w]));
    }
    void arrived(std::size_t) override {}
    std::vector<std::size_t> sizes;
    std::vector<std::vector<unsigned char>> all;
  };
  const auto lengthOf = [](std::size_t w) { return w * 70'000 % 200'000; };
  for (const auto [nodes, local] : kShapes) {
    if (nodes == 1) continue;
    CAPTURE(nodes);
    CAPTURE(local);
    const auto workers = static_cast<std::size_t>(nodes * local);
    VirtualNetwork network(nodes);
    onExchanges(network, ofSize(5), {.local = local}, [&](const ExchangeHere& here) {
      Texts texts(workers);
      runHere(here.exchange, [&](MergeOps& ops) {
        const auto w = static_cast<std::size_t>(ops.participant());
        for (int round = 0; round < 3; ++round) {
          texts.sizes[w] = lengthOf(w);
          std::ranges::fill(texts.all[w], static_cast<unsigned char>(w + 1));
          ops.allGather(texts);
          for (std::size_t v = 0; v < workers; ++v) {
            CHECK(texts.sizes[v] == lengthOf(v));
            const auto got = std::span(texts.all[v]).first(lengthOf(v));
            CHECK(std::ranges::count(got, static_cast<unsigned char>(v + 1)) == std::ssize(got));
          }
          std::array<double, 1> together{};
          ops.allReduce(together);  // all have read them
        }
      });
    });
  }
}

TEST_CASE("groups of one worker, and one group of all, give sums in worker order, too") {
  const auto grouped = replicasOf({0, 1, 2}, 997), plain = replicasOf({0, 1, 2}, 997);
  HostExchange three(grouped.states, UpdaterState::Average, 3), one(plain.states, UpdaterState::Average);
  const Work merge = [](MergeOps& ops) { ops.mergeState(weightsOf(ops)); };
  runHere(three, merge);
  runHere(one, merge);
  // The same sum except for the rounding of products to float64: at most the last bit of a float32.
  CHECK(std::equal(grouped.values(0), grouped.values(0) + 997, plain.values(0),
                   [](float a, float b) { return std::abs(a - b) <= std::abs(b) * 1.2e-7F; }));
}

TEST_CASE("each of three nodes sends two thirds of the parameters twice, as in a ring") {
  VirtualNetwork network(3);
  onExchanges(network, ofSize(48'000), {}, [](const ExchangeHere& here) {
    runHere(here.exchange,
            [](MergeOps& ops) { ops.merge(ops.block(BlockKind::Parameters), weightsOf(ops)); });
  });
  for (int n = 0; n < 3; ++n) CHECK(network.bytesSent(n) == 2 * (2 * 16'000) * 4);
  // At 100 Mbit/s: the time for one node's bytes plus the latency of at least one round trip.
  CHECK(network.seconds() >= 256'000 / 12.5e6 + 2e-3);
  CHECK(network.seconds() < 0.1);
}

TEST_CASE("a merge that fails leaves merged copies and blocks unchanged") {
  VirtualNetwork network(2);
  onExchanges(network, ofSize(100'000), {.silence = 200ms, .blocks = kBlocks}, [&](const ExchangeHere& here) {
    runHere(here.exchange, [](MergeOps& ops) { ops.mergeState(weightsOf(ops)); });
    const auto undo = here.exchange.makeUndo({});
    const Tensor before = cloneTensor(here.exchange.blocks()[0].mergedCopy());
    if (here.node == 1) network.silence(1);
    const auto problem = thrown<NodeFailure>([&] {
      Context context;
      undo->keep(here.node);
      here.exchange.begin(here.node);
      MergeOps ops(here.exchange, here.node, context);
      ops.combine(ops.block(BlockKind::Parameters).mergedCopies, {}, Fragment::whole(100'000));
      for (int again = 0; again < 2; ++again) ops.mergeState(weightsOf(ops));
    });
    CHECK_CONTAINS(problem,
                   here.node == 0 ? "nothing was heard of node 1 (virtual1) for 0.2 s" : "node 0 (virtual0)");
    CHECK(undo->rollBack());
    CHECK(sameBits(before, here.exchange.blocks()[0].mergedCopy()));
  });
}

TEST_CASE("a merge that would not be finite is named by its block and element on every node") {
  VirtualNetwork network(2);
  onExchanges(network, ofSize(100), {}, [&](const ExchangeHere& here) {
    float* const velocity = here.replicas.values(0, 2);
    velocity[20] = velocity[70] = std::numeric_limits<float>::infinity();
    const auto problem = thrown<NonFiniteScore>([&] {
      Context context;
      here.exchange.begin(here.node);
      MergeOps ops(here.exchange, here.node, context);
      ops.merge(here.exchange.block(BlockKind::UpdaterState), weightsOf(ops));
    });
    CHECK_CONTAINS(problem, here.node == 0 ? "element 20 of" : "element 70 of");
    CHECK_CONTAINS(problem, fmt::format(" of the velocity, where worker {} has inf", here.node));
  });
}

TEST_CASE("after a failure an exchange waits until the network no longer uses its memory") {
  /// Takes its time to end.
  class Slow final : public NodeTransport {
   public:
    Slow(std::unique_ptr<NodeTransport> inner, std::atomic<bool>& ended)
        : inner_(std::move(inner)), ended_(ended) {}
    int node() const override { return inner_->node(); }
    int nodes() const override { return inner_->nodes(); }
    std::string host() const override { return inner_->host(); }
    std::string describe() const override { return inner_->describe(); }
    void begin(const NodeMessage& message, int ticket) override { inner_->begin(message, ticket); }
    void poll(std::vector<int>& done) override { inner_->poll(done); }
    void abandon() noexcept override {
      std::this_thread::sleep_for(50ms);
      inner_->abandon();
      ended_ = true;
    }

   private:
    const std::unique_ptr<NodeTransport> inner_;
    std::atomic<bool>& ended_;
  };
  enum class Call { Wait, Revert, Destroy };
  for (const Call call : {Call::Wait, Call::Revert, Call::Destroy}) {
    VirtualNetwork network(2);
    std::array<std::atomic<bool>, 2> ended{};
    std::barrier whole(2);
    onThreads(2, [&](int node) {
      auto& done = ended.at(static_cast<std::size_t>(node));
      const Replicas replicas = replicasOf({node}, 100);
      NodeLink link([&] { return std::make_unique<Slow>(network.transport(node), done); }, 30s);
      auto exchange = std::make_unique<NodeExchange>(replicas.states, UpdaterState::Average, link);
      exchange->restart();
      const auto undo = exchange->makeUndo({});
      whole.arrive_and_wait();
      exchange->abort();
      if (call == Call::Wait) exchange->wait();
      if (call == Call::Revert) undo->rollBack();
      if (call == Call::Destroy) exchange.reset();
      CHECK(done);
    });
  }
}

TEST_CASE("a rule without a codec sends its means while workers train, even if it has a block on each node") {
  VirtualNetwork network(2);
  std::binary_semaphore launched(0);
  bool flies = false;
  const std::vector<StrategyBlock> blocks = {{.name = "arriving", .inFlight = true},
                                             {.name = "own", .place = StrategyBlock::Place::Node}};
  onExchanges(network, ofSize(100), {.blocks = blocks}, [&](const ExchangeHere& here) {
    runHere(here.exchange, [&](MergeOps& ops) {
      if (here.node == 1)
        flies = launched.try_acquire_for(20s);  // otherwise node 0's mean waits for this node
      launchMean(ops);
      if (here.node == 0) launched.release();
    });
    here.exchange.wait();
  });
  CHECK(flies);
}

TEST_CASE("awaitLaunched() returns whether what was launched has arrived; its landing throws the failure") {
  VirtualNetwork network(2);
  const std::vector<StrategyBlock> blocks = {{.name = "arriving", .inFlight = true}};
  onExchanges(network, ofSize(100), {.blocks = blocks}, [&](const ExchangeHere& here) {
    runHere(here.exchange, launchMean);
    CHECK(here.exchange.nodeGroup()->awaitLaunched());
    for (int element : {20, 70}) here.replicas.values(0)[element] = std::numeric_limits<float>::infinity();
    runHere(here.exchange, launchMean);
    CHECK_FALSE(here.exchange.nodeGroup()->awaitLaunched());
    CHECK_FALSE(here.exchange.nodeGroup()->awaitLaunched());
    Context context;
    here.exchange.begin(here.node);
    MergeOps ops(here.exchange, here.node, context);
    CHECK_THROWS_AS(launchMean(ops), NonFiniteScore);
  });
}

TEST_CASE("nodes send only the gathered messages of a round, unless blocks may be collected") {
  std::vector<std::int64_t> sent;
  for (const auto place : {StrategyBlock::Place::Replica, StrategyBlock::Place::Node}) {
    VirtualNetwork network(3);
    const std::vector<StrategyBlock> blocks = {{.name = "residual", .place = place}};
    onExchanges(network, ofSize(5), {.blocks = blocks}, [&](const ExchangeHere& here) {
      const std::array<std::byte, 100> own{};
      std::array<std::byte, 300> all{};
      const std::int64_t before = here.link.bytesSent();
      here.exchange.allGather(own, all);
      if (here.node == 1) sent.push_back(here.link.bytesSent() - before);
    });
  }
  CHECK(sent[0] == 2 * 100);
  CHECK(sent[1] == 2 * 100 + 2);  // plus one byte each: whether the node requests a block
}
