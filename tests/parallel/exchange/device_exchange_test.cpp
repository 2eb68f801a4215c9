#include "muster/parallel/exchange/device_exchange.h"

#include "muster/core/base/random.h"
#include "muster/parallel/exchange/device_reduction.h"
#include "muster/parallel/exchange/host_exchange.h"
#include "tests/parallel/exchange/merge_all.h"
#include "tests/parallel/replicas.h"
#include "tests/support/devices.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Worker i on "device" i mod `devices`; all of them are the CPU.
MergePlan planOf(int workers, int devices, TransportKind kind) {
  std::vector<DeviceGroup> groups(static_cast<std::size_t>(std::min(workers, devices)));
  for (std::size_t w = 0; w < static_cast<std::size_t>(workers); ++w)
    groups[w % groups.size()].workers.push_back(w);
  return {std::move(groups), kind};
}

/// Replicas with random blocks of each kind and rule, determined by the number of workers and the size.
Replicas randomReplicas(int workers, std::int64_t elements, DType type = DType::Float32) {
  auto blocks = blocksOfEachKind(elements, type);
  if (elements % 2 == 0)
    blocks.push_back({"moments", BlockKind::Statistics, MergeRule::Moments, elements, type});
  return Replicas(firstWorkers(workers), blocks, [&](int w, std::size_t b, std::int64_t i) {
    const double value =
        RandomStream(static_cast<std::uint64_t>(w), blocks[b].name).normal(static_cast<std::uint64_t>(i));
    return b == 5 && i >= elements / 2 ? value * value : value;  // a variance
  });
}

/// Replicas that are merged on devices, and others with the same values that are merged on the host.
struct Both {
  Both(int workers, std::int64_t elements, const MergePlan& plan, DType type = DType::Float32)
      : there(randomReplicas(workers, elements, type)),
        here(randomReplicas(workers, elements, type)),
        exchange(there.states, UpdaterState::Average, plan),
        host(here.states, UpdaterState::Average) {}

  Replicas there, here;
  DeviceExchange exchange;
  HostExchange host;
};

double at(const Replicas& replicas, int worker, std::size_t block, std::int64_t i) {
  const Tensor& values = replicas.owned[static_cast<std::size_t>(worker)][block].values;
  return values.dtype() == DType::Float32 ? values.data<float>()[i] : values.data<double>()[i];
}

std::vector<double> weightsOf(int workers) {
  std::vector<double> weights;
  for (int w = 0; w < workers; ++w) weights.push_back(1 + w % 3);
  return weights;
}

void checkClose(const Spread& spread, const Spread& wanted) {
  CHECK(spread.distance == doctest::Approx(wanted.distance).epsilon(1e-6));
  CHECK(spread.norm == doctest::Approx(wanted.norm).epsilon(1e-6));
}

bool sameBits(const Replicas& a, const Replicas& b) {
  for (std::size_t w = 0; w < a.owned.size(); ++w)
    for (std::size_t i = 0; i < a.owned.front().size(); ++i) {
      const Tensor &x = a.owned[w][i].values, &y = b.owned[w][i].values;
      if (x.bytes() != y.bytes() || std::memcmp(x.raw(), y.raw(), x.bytes()) != 0) return false;
    }
  return true;
}

}  // namespace

TEST_CASE("1 to 8 workers on 1 to 4 devices get the host's merge in all replicas and merged copies") {
  for (int workers = 1; workers <= 8; ++workers)
    for (const std::int64_t elements : {0, 1, 15, 16, 34, 97, 4100})
      for (const TransportKind kind : {TransportKind::Peers, TransportKind::Host})
        for (int devices = 1; devices <= std::min(workers, 4); ++devices) {
          INFO("workers ", workers, ", devices ", devices, ", elements ", elements);
          Both both(workers, elements, planOf(workers, devices, kind));
          mergeAll(both.exchange, weightsOf(workers));
          mergeAll(both.host, weightsOf(workers));
          bool close = true, same = true, copies = true;
          for (std::size_t b = 0; b < both.there.owned.front().size(); ++b)
            for (std::int64_t i = 0; i < elements; ++i)
              for (int w = 0; w < workers; ++w) {
                const double got = at(both.there, w, b, i), wanted = at(both.here, w, b, i);
                close = close && std::abs(got - wanted) <= 1e-6 * (1 + std::abs(wanted));
                const auto& block = both.exchange.blocks()[b];
                if (block.rule == MergeRule::Keep) continue;
                same = same && got == at(both.there, 0, b, i);
                if (block.hasMergedCopy())
                  copies = copies && block.mergedCopies[static_cast<std::size_t>(w)].data<float>()[i] == got;
              }
          CHECK(close);
          CHECK(same);
          CHECK(copies);
          // With a single device, or at most one replica per device, sums are in the workers' order.
          if (devices == 1 || workers <= devices) CHECK(sameBits(both.there, both.here));
        }
}

TEST_CASE("the bits of a merge depend on neither the transport nor the run") {
  for (const auto& [workers, devices] : {std::pair{5, 2}, {8, 3}, {4, 4}}) {
    std::vector<Replicas> all;
    for (const auto kind : {TransportKind::Peers, TransportKind::Host, TransportKind::Peers}) {
      const auto& replicas = all.emplace_back(randomReplicas(workers, 1000));
      DeviceExchange exchange(replicas.states, UpdaterState::Average, planOf(workers, devices, kind));
      mergeAll(exchange, weightsOf(workers));
      CHECK(sameBits(replicas, all.front()));
    }
  }
}

TEST_CASE("float64 blocks are merged in float64") {
  Both both(5, 98, planOf(5, 3, TransportKind::Peers), DType::Float64);
  mergeAll(both.exchange, weightsOf(5));
  mergeAll(both.host, weightsOf(5));
  bool close = true;
  for (std::size_t b = 0; b < both.there.owned.front().size(); ++b)
    for (std::int64_t i = 0; i < 98; ++i)
      for (int w = 0; w < 5; ++w)
        close = close && std::abs(at(both.there, w, b, i) - at(both.here, w, b, i)) <= 1e-14;
  CHECK(close);
}

TEST_CASE("workers of weight 0 receive the mean of the others, of a single one its state, bit for bit") {
  for (const std::vector<double>& weights : {std::vector<double>{3, 0, 1, 0}, {0, 0, 2, 0}}) {
    Both both(4, 40, planOf(4, 2, TransportKind::Host));
    // Values of weight 0 must not reach other workers; workers 1 and 3 are all of device 1.
    for (std::size_t w = 0; w < 4; ++w)
      for (const std::size_t b : {0, 5})
        if (weights[w] == 0) std::ranges::fill(both.there.owned[w][b].values.span<float>(), std::nanf(""));
    mergeAll(both.exchange, weights);
    mergeAll(both.host, weights);
    CHECK(sameBits(both.there, both.here));
  }
}

TEST_CASE("the spread is the distance of all replicas from the mean of all, on any number of devices") {
  for (const auto& [workers, devices] : {std::pair{1, 1}, {4, 1}, {3, 3}, {8, 3}, {7, 2}}) {
    INFO("workers ", workers, ", devices ", devices);
    Both both(workers, 1000, planOf(workers, devices, TransportKind::Peers));
    checkClose(mergeAll(both.exchange, weightsOf(workers), true),
               mergeAll(both.host, weightsOf(workers), true));
  }
}

TEST_CASE("an exchange is whole between merges, but not within one") {
  auto replicas = randomReplicas(2, 10);
  DeviceExchange exchange(replicas.states, UpdaterState::Average, planOf(2, 2, TransportKind::Peers));
  CHECK(exchange.whole());
  exchange.begin(1);
  CHECK(exchange.whole());  // the first participant only enqueues
  exchange.begin(0);
  CHECK_FALSE(exchange.whole());
  exchange.end(1);
  CHECK_FALSE(exchange.whole());
  exchange.end(0);
  CHECK(exchange.whole());
  exchange.abort();  // copies finish by themselves
  CHECK(exchange.whole());
  exchange.begin(0);  // a merge fails half-way; restart() fills all blocks again
  exchange.abort();
  exchange.wait();
  CHECK_FALSE(exchange.whole());
  exchange.restart();
  CHECK(exchange.whole());
}

namespace {

/// What a merge overwrites: merged copies, and the strategy's blocks beside them.
std::vector<std::byte> mergedBits(const Exchange& exchange) {
  std::vector<std::byte> bits;
  const auto add = [&](const Tensor& t) {
    const auto* const begin = static_cast<const std::byte*>(t.raw());
    bits.insert(bits.end(), begin, begin + t.bytes());
  };
  for (const auto& block : exchange.blocks())
    if (block.hasMergedCopy()) add(block.mergedCopy());
  for (const auto& state : exchange.strategyBlocks()) add(state.values.front());
  return bits;
}

void fillReplicas(Replicas& replicas, float value) {
  for (auto& blocks : replicas.owned)
    for (auto& block : blocks) std::ranges::fill(block.values.span<float>(), value);
}

}  // namespace

TEST_CASE("a merge that fails is undone on the first device if merges are kept") {
  for (const int workers : {1, 2, 5})
    for (const int devices : {1, 2}) {
      INFO("workers ", workers, ", devices ", devices);
      auto replicas = randomReplicas(workers, 34);
      DeviceExchange exchange(replicas.states, UpdaterState::Average,
                              planOf(workers, devices, TransportKind::Peers));
      exchange.makeStrategyBlocks(std::array{StrategyBlock{.name = "momentum"}});
      Tensor momentum = exchange.strategyBlock("momentum").values.front();
      const auto none = exchange.makeUndo({});
      CHECK_FALSE(none->everyMerge());
      CHECK_FALSE(none->rollBack());
      const auto undo = exchange.makeUndo({.everyMerge = true});
      CHECK(undo->everyMerge());
      std::vector<double> weights = weightsOf(workers);
      Context context;
      for (const float value : {1.0f, 2.0f}) {
        mergeAll(exchange, weights);
        const auto before = mergedBits(exchange);
        for (int p = 0; p < workers; ++p) undo->keep(p);
        fillReplicas(replicas, value);
        exchange.begin(0);
        const auto& parameters = exchange.block(BlockKind::Parameters);
        for (int p = 0; p < workers; ++p) exchange.merge(p, parameters, weights, context, nullptr);
        std::ranges::fill(momentum.span<float>(), value);
        exchange.abort();  // the merge ends here
        exchange.wait();
        CHECK_FALSE(exchange.whole());
        CHECK(mergedBits(exchange) != before);
        CHECK(undo->rollBack());
        CHECK(exchange.whole());
        CHECK(mergedBits(exchange) == before);
        exchange.restart();
      }
    }
}

TEST_CASE("a merge that writes NaN is detected before the next one, which would overwrite the kept one") {
  for (const int devices : {1, 2}) {
    CAPTURE(devices);
    auto replicas = randomReplicas(2, 34);
    DeviceExchange exchange(replicas.states, UpdaterState::Average, planOf(2, devices, TransportKind::Peers));
    exchange.makeStrategyBlocks(std::array{StrategyBlock{.name = "momentum"}});
    const auto undo = exchange.makeUndo({.mayOverflow = true});
    mergeAll(exchange, {1, 1});
    CHECK_FALSE(undo->failed());
    const auto before = mergedBits(exchange);
    for (const std::string_view where : {"parameters", "velocity", "momentum"}) {
      CAPTURE(where);
      undo->keep(0);
      const bool ofStrategy = where == "momentum";
      Tensor written = ofStrategy
                           ? exchange.strategyBlock("momentum").values.front()
                           : std::ranges::find(exchange.blocks(), where, &SharedBlock::name)->mergedCopy();
      exchange.begin(0);
      written.data<float>()[5] = std::nanf("");
      exchange.end(0);
      exchange.wait();
      CHECK(exchange.whole());
      CHECK(undo->failed());
      CHECK(thrown<NonFiniteScore>([&] { undo->keep(0); }) ==
            fmt::format("the last merge has written numbers that are not finite, in {}", where));
      undo->keep(1);  // the first participant does it
      CHECK(undo->rollBack());
      CHECK_FALSE(undo->failed());
      CHECK(mergedBits(exchange) == before);
    }
  }
}

TEST_CASE("devices that check results name the element of the block") {
  for (const int devices : {1, 2, 4}) {
    CAPTURE(devices);
    auto replicas = randomReplicas(4, 3000);
    replicas.values(2)[2500] = std::numeric_limits<float>::infinity();
    DeviceExchange exchange(replicas.states, UpdaterState::Average, planOf(4, devices, TransportKind::Peers));
    exchange.makeStrategyBlocks(std::array{StrategyBlock{.name = "centre"}});
    Context context;
    for (int p = 0; p < 4; ++p) exchange.arrive(p, context);
    exchange.begin(0);
    MergeOps ops(exchange, 0, context);
    const std::vector<double> weights(4, 1);
    CHECK(thrown<NonFiniteScore>([&] {
            ops.mean(ops.block(BlockKind::Parameters).replicas, weights, ops.own("centre"),
                     {{{100, 200}, {2000, 3000}}});
          })
              .starts_with(
                  "a merge would not leave finite numbers: element 2500 of all of the strategy's centre"));
    exchange.end(0);
    exchange.wait();
  }
}

TEST_CASE("integer blocks, which are not merged, are kept but not checked") {
  const auto table = oneSegment(6);
  auto parameters = StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, table),
       counts = StateBlock::zeros("counts", BlockKind::Statistics, MergeRule::Keep, table, DType::Int64);
  DeviceExchange exchange({{&parameters, &counts}}, UpdaterState::Average, planOf(1, 1, TransportKind::Host));
  const auto undo = exchange.makeUndo({.mayOverflow = true});
  undo->keep(0);
  mergeAll(exchange, {1});
  CHECK_FALSE(undo->failed());
  CHECK(undo->rollBack());
}

TEST_CASE_ON("replicas on one GPU get the host's merge", Where, OnGpu) {
  for (const int workers : {1, 2, 3, 8, 9, 32}) {
    CAPTURE(workers);
    auto expected = randomReplicas(workers, 4100), there = randomReplicas(workers, 4100);
    for (auto& blocks : there.owned)
      for (auto& block : blocks) block.values = copyTo(block.values, Device::cuda(0));
    DeviceExchange exchange(
        there.states, UpdaterState::Average,
        MergePlan(groupByDevice(std::vector(static_cast<std::size_t>(workers), Device::cuda(0))),
                  TransportKind::Host));
    HostExchange host(expected.states, UpdaterState::Average);
    // Compare spreads, and merge the result a second time.
    for (int merge = 0; merge < 2; ++merge)
      checkClose(mergeAll(exchange, weightsOf(workers), true, Device::cuda(0)),
                 mergeAll(host, weightsOf(workers), true));
    bool close = true;
    for (std::size_t w = 0; w < there.owned.size(); ++w)
      for (std::size_t b = 0; b < there.owned.front().size(); ++b) {
        const Tensor got = copyTo(there.owned[w][b].values, Device::cpu());
        for (std::int64_t i = 0; i < got.elements(); ++i) {
          const double wanted = at(expected, static_cast<int>(w), b, i);
          close = close && std::abs(got.data<float>()[i] - wanted) <= 1e-6 * (1 + std::abs(wanted));
        }
      }
    CHECK(close);
  }
}
