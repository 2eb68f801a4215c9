#include "muster/parallel/exchange/host_exchange.h"

#include "muster/parallel/exchange/merge_undo.h"
#include "muster/parallel/exchange/node_group.h"
#include "tests/parallel/exchange/merge_all.h"
#include "tests/parallel/replicas.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Element i of worker w's blocks is w + i.
Replicas replicasOf(int workers, std::int64_t elements) {
  return Replicas(firstWorkers(workers), blocksOfEachKind(elements),
                  [](int w, std::size_t, std::int64_t i) { return static_cast<double>(w + i % 1000); });
}

}  // namespace

TEST_CASE("every element of every block is merged, for any number of participants") {
  for (const int workers : {1, 2, 3, 4, 5, 8})
    for (const std::int64_t elements : {0, 1, 15, 16, 17, 97, 4099}) {
      INFO("workers ", workers, ", elements ", elements);
      auto replicas = replicasOf(workers, elements);
      HostExchange exchange(replicas.states, UpdaterState::Average);
      CHECK(exchange.participants() == workers);
      // Weights 1, 2, .. W: the mean of w is sum w (w + 1) / sum (w + 1) = 2 (W - 1) / 3.
      std::vector<double> weights;
      for (int w = 0; w < workers; ++w) weights.push_back(w + 1);
      mergeAll(exchange, weights);
      const double mean = 2.0 * (workers - 1) / 3;
      bool good = true, same = true, untouched = true, reset = true;
      for (std::int64_t i = 0; i < elements; ++i)
        for (int w = 0; w < workers; ++w) {
          const double expected = mean + static_cast<double>(i % 1000);
          good = good && std::abs(replicas.values(w, 0)[i] - expected) <= 1e-7 * (1 + expected);
          same = same && replicas.values(w, 0)[i] == replicas.values(0, 0)[i] &&
                 exchange.blocks()[0].mergedCopy().data<float>()[i] == replicas.values(0, 0)[i] &&
                 replicas.values(w, 2)[i] == replicas.values(0, 0)[i] &&
                 replicas.values(w, 4)[i] == replicas.values(0, 0)[i];
          untouched = untouched && replicas.values(w, 1)[i] == static_cast<float>(w + i % 1000);
          reset = reset && replicas.values(w, 3)[i] == 0;
        }
      CHECK(good);
      CHECK(same);
      CHECK(untouched);  // blocks with MergeRule::Keep
      CHECK(reset);
    }
}

TEST_CASE(
    "statistics, float64 blocks and kept updaters' states are merged by their rules, whatever the slices") {
  // Worker w: mean w, variance 2. With weights 1, 2, 1: mean 1, variance 2 + (0 + 2 * 1 + 4) / 4 - 1.
  for (const std::int64_t half : {1, 16, 33, 100}) {
    CAPTURE(half);
    const auto statistics = BlockKind::Statistics;
    const Replicas replicas(firstWorkers(3),
                            {{"moments", statistics, MergeRule::Moments, 2 * half},
                             {"mean", statistics, MergeRule::Average, half, DType::Float64},
                             {"zero", statistics, MergeRule::Reset, half, DType::Float64},
                             {"velocity", BlockKind::UpdaterState, MergeRule::Average, half}},
                            [&](int w, std::size_t b, std::int64_t i) {
                              return b == 1 ? w * 0x1p-40 + 1 : i < half ? w : 2;
                            });
    HostExchange exchange(replicas.states, UpdaterState::Keep);
    mergeAll(exchange, {1, 2, 1});
    for (std::size_t w = 0; w < 3; ++w)
      for (std::int64_t i = 0; i < half; ++i) {
        CHECK(replicas.values(w)[i] == doctest::Approx(1));
        CHECK(replicas.values(w)[half + i] == doctest::Approx(2.5));
        CHECK(replicas.owned[w][1].values.data<double>()[i] == 1 + 0x1p-40);
        CHECK(replicas.owned[w][2].values.data<double>()[i] == 0);
        CHECK(replicas.values(w, 3)[i] == static_cast<float>(w));
      }
  }
}

TEST_CASE("replicas with different blocks are refused by name, and a model without a block that is needed") {
  CHECK_REFUSED(HostExchange({}, UpdaterState::Average), "exchange: there are no replicas");
  auto small = replicasOf(1, 4), large = replicasOf(1, 5);
  CHECK_REFUSED(HostExchange({small.states[0], large.states[0]}, UpdaterState::Average),
                "exchange: block parameters [5] of worker 1 differs from block parameters [4] of worker 0");
  auto fewer = large.states[0];
  fewer.erase(fewer.begin());
  CHECK_REFUSED(HostExchange({large.states[0], fewer}, UpdaterState::Average),
                "exchange: worker 1 has 4 state blocks, worker 0 has 5");
  CHECK_REFUSED(HostExchange({fewer}, UpdaterState::Average).block(BlockKind::Parameters),
                "the strategy needs a model with one block of parameters, this one has 0");
}

TEST_CASE("gradients have no merged copy, and only blocks that contributors send are counted in bytes") {
  auto replicas = replicasOf(2, 100);
  HostExchange exchange(replicas.states, UpdaterState::Average);
  CHECK_FALSE(exchange.blocks()[4].hasMergedCopy());
  Context context;
  const std::vector<double> weights = {1, 0};
  const auto bytes = [&](int participant, std::size_t block) {
    MergeOps ops(exchange, participant, context);
    ops.merge(exchange.blocks()[block], weights);
    return ops.bytes();
  };
  CHECK(bytes(0, 0) == 400);
  CHECK(bytes(1, 0) == 0);  // the worker contributes nothing
  CHECK(bytes(0, 1) == 0);  // kept per worker
  CHECK(bytes(0, 3) == 0);  // zeroing needs no message
  auto alone = replicasOf(1, 100);
  HostExchange single(alone.states, UpdaterState::Average);
  MergeOps ops(single, 0, context);
  ops.merge(single.blocks()[0], std::vector<double>{1});
  CHECK(ops.bytes() == 0);
}

TEST_CASE("the spread of all slices together is the replicas' distance from their mean") {
  // Elements w + i with weights 1, 1, 2: mean 1.25 + i; distance per element (1.25^2 + 0.25^2 + 2 0.75^2)
  // / 4.
  constexpr std::int64_t kElements = 100;
  auto replicas = replicasOf(3, kElements);
  HostExchange exchange(replicas.states, UpdaterState::Average);
  const std::vector<double> weights = {1, 1, 2};
  double distance = 0, norm = 0, expectedNorm = 0;
  Context context;
  for (int p = 0; p < 3; ++p) {
    Spread spread;
    exchange.merge(p, exchange.blocks()[0], weights, context, &spread);
    distance += spread.distance;
    norm += spread.norm;
  }
  for (std::int64_t i = 0; i < kElements; ++i) expectedNorm += (1.25 + i) * (1.25 + i);
  CHECK(distance == doctest::Approx(kElements * (1.5625 + 0.0625 + 2 * 0.5625) / 4));
  CHECK(norm == doctest::Approx(expectedNorm));
}

TEST_CASE("blocks that cannot be merged are refused before a merge") {
  const auto refusal = [](DType type, std::int64_t elements, MergeRule rule) {
    auto block = StateBlock::zeros("counts", BlockKind::Statistics, rule, oneSegment(elements), type);
    return thrown<InvalidArgument>([&] { HostExchange({{&block}}, UpdaterState::Average); });
  };
  CHECK(refusal(DType::Int64, 4, MergeRule::Average) ==
        "exchange: block counts is int64 [4] on cpu; what is merged must be float32 or float64, and "
        "row-major");
  CHECK(refusal(DType::Float32, 3, MergeRule::Moments) ==
        "exchange: block counts is to be merged as means and variances, but has 3 elements");
  auto kept =
      StateBlock::zeros("counts", BlockKind::Statistics, MergeRule::Keep, oneSegment(3), DType::Int64);
  CHECK(HostExchange({{&kept}}, UpdaterState::Average).blocks().size() == 1);
}

TEST_CASE("sums over participants are in order; a failure ends the waiting until the exchange restarts") {
  auto replicas = replicasOf(3, 16);
  HostExchange exchange(replicas.states, UpdaterState::Average);
  // 1e16 + 1 rounds to 1e16, so another order gives another sum.
  const std::vector<double> own = {1, 1e16, -1e16};
  const auto sums = [&](int absent) {
    std::vector<std::vector<double>> values;
    for (const double value : own) values.push_back({value, 2 * value});
    std::vector<std::string> errors(3);
    std::vector<std::jthread> threads;
    for (int p = 0; p < 3; ++p)
      threads.emplace_back([&, p] {
        Context context;
        MergeOps ops(exchange, p, context);
        const auto at = static_cast<std::size_t>(p);
        if (p == absent) return exchange.abort();
        errors[at] = thrown<PeerFailure>([&] { ops.allReduce(values[at]); });
      });
    threads.clear();
    for (int p = 0; p < 3; ++p)
      if (p != absent && absent >= 0) CHECK(!errors[static_cast<std::size_t>(p)].empty());
    return values;
  };
  const std::vector<std::vector<double>> expected(3, {(1 + 1e16) - 1e16, 2 * ((1 + 1e16) - 1e16)});
  CHECK(sums(-1) == expected);
  sums(1);
  exchange.restart();
  CHECK(sums(-1) == expected);
}

TEST_CASE("a merge on the host is undone: kept on demand, before every merge, or in the statistics alone") {
  enum class Kept { OnDemand, Always, Statistics };
  for (const Kept kept : {Kept::OnDemand, Kept::Always, Kept::Statistics}) {
    CAPTURE(static_cast<int>(kept));
    auto replicas = replicasOf(2, 34);
    HostExchange exchange(replicas.states, UpdaterState::Average);
    const bool always = kept != Kept::OnDemand;
    const auto undo = exchange.makeUndo({.everyMerge = always, .allState = kept != Kept::Statistics});
    CHECK(undo->everyMerge() == always);
    CHECK(undo->rollBack() == always);  // on demand nothing is kept yet
    mergeAll(exchange, {1, 1});
    for (const int participant : {0, 1}) undo->keep(participant);
    if (!always) undo->keepAll();
    for (auto& blocks : replicas.owned)
      for (auto& block : blocks) std::ranges::fill(block.values.span<float>(), 9.0f);
    mergeAll(exchange, {1, 1});
    const auto lastOf = [&](std::size_t block) -> float& {
      return exchange.blocks()[block].mergedCopy().data<float>()[33];
    };
    lastOf(3) = 5;  // statistics
    CHECK(lastOf(0) == 9);
    CHECK(undo->rollBack());
    CHECK(lastOf(0) == (kept == Kept::Statistics ? 9 : 33.5f));  // the mean of 33 and 34
    CHECK(lastOf(2) == (kept == Kept::Statistics ? 9 : 33.5f));
    CHECK(lastOf(3) == 0);
    CHECK_FALSE(undo->failed());
  }
}

TEST_CASE("a number that is not finite is named by its element in the block, whatever the groups") {
  constexpr std::int64_t kBad = 2500;
  const auto failureOf = [](int groups, auto operation) {
    auto replicas = replicasOf(4, 3000);
    replicas.values(2)[kBad] = std::numeric_limits<float>::infinity();
    HostExchange exchange(replicas.states, UpdaterState::Average, groups);
    exchange.makeStrategyBlocks(std::array{StrategyBlock{.name = "centre"}});
    std::string text;
    for (int p = 0; p < 4; ++p) try {
        Context context;
        MergeOps ops(exchange, p, context);
        operation(ops, std::vector<double>(4, 1));
      } catch (const NonFiniteScore& error) {
        text += error.what();  // of one participant, whose share it is
      }
    return text;
  };
  const auto mean = [](MergeOps& ops, const std::vector<double>& weights) {
    ops.mean(ops.block(BlockKind::Parameters).replicas, weights, ops.own("centre"), Fragment::whole(3000));
  };
  const auto merge = [](MergeOps& ops, const std::vector<double>& weights) {
    ops.merge(ops.block(BlockKind::Parameters), weights);
  };
  for (const int groups : {1, 2, 3}) {
    CAPTURE(groups);
    CHECK(
        failureOf(groups, mean) ==
        "a merge would not leave finite numbers: element 2500 of all of the strategy's centre, where worker "
        "2 has inf");
    CHECK(failureOf(groups, merge) ==
          "a merge would not leave finite numbers: element 2500 of all of the parameters, where worker 2 has "
          "inf");
  }
}

TEST_CASE("on one node there is no group of nodes, and an all-gather copies") {
  auto replicas = replicasOf(2, 1);
  const HostExchange exchange(replicas.states, UpdaterState::Average);
  CHECK(exchange.nodeGroup() == nullptr);
  CHECK(exchange.topology().isHere(1));
  const std::array own = {std::byte{7}, std::byte{2}};
  std::array<std::byte, 2> all{};
  exchange.allGather(own, all);
  CHECK(all == own);
}
