#include "muster/parallel/exchange/merge_ops.h"

#include "muster/parallel/exchange/host_exchange.h"
#include "tests/parallel/replicas.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Two replicas of 40 parameters, of which element i of worker w is 10 w + i, and blocks "a" and "b" of
/// zeros.
struct TwoReplicas {
  TwoReplicas() {
    exchange.makeStrategyBlocks(std::array{StrategyBlock{.name = "a"}, StrategyBlock{.name = "b"}});
  }
  /// Each participant does its part. @return what "a" then has of element 33.
  template <typename Work>
  float after(Work work) {
    for (const int p : {0, 1}) {
      MergeOps ops(exchange, p, context);
      work(ops, ops.own("a"), ops.own("b"));
    }
    return exchange.strategyBlock("a").values[0].data<float>()[33];
  }

  Replicas replicas{firstWorkers(2),
                    {{"parameters", BlockKind::Parameters, MergeRule::Average, 40}},
                    [](int w, std::size_t, std::int64_t i) { return 10.0 * w + static_cast<double>(i); }};
  HostExchange exchange{replicas.states, UpdaterState::Average};
  const std::span<const Tensor> parameters = exchange.block(BlockKind::Parameters).replicas;
  const Fragment all = Fragment::whole(40);
  Context context;
};

using Block = std::span<const Tensor>;

}  // namespace

TEST_CASE("vectors are combined element by element, in the order of the calls, in a fragment alone") {
  TwoReplicas two;
  const auto mean = [&](double keep) {
    return two.after([&](MergeOps& ops, Block a, Block) {
      ops.mean(two.parameters, std::array{1.0, 3.0}, a, two.all, keep);
    });
  };
  CHECK(mean(0.5) == 20.25f);  // half of (33 + 3 * 43) / 4
  CHECK(mean(0) == 40.5f);
  const auto doubled = [&](MergeOps& ops, Block a, Block b) {
    ops.combine(b, {{2, a}, {0, two.parameters}}, two.all);
    ops.combine(a, {{1, b}, {-0.5, b}, {1, b}}, two.all);
  };
  CHECK(two.after(doubled) == 3 * 40.5f);
  const auto cleared = [&](std::vector<Slice> slices) {
    return two.after([&](MergeOps& ops, Block a, Block) { ops.combine(a, {}, {slices}); });
  };
  CHECK(cleared({{0, 33}, {34, 40}}) == 3 * 40.5f);
  CHECK(cleared({{0, 8}, {32, 40}}) == 0);
}

TEST_CASE("replicas move towards what is written back, and their distance is the sum of all shares") {
  TwoReplicas two;
  two.after([&](MergeOps& ops, Block a, Block) { ops.writeBack(a, two.parameters, 0.25, two.all); });
  CHECK(two.replicas.values(1)[33] == 10.75f);  // a quarter of 43
  two.after([&](MergeOps& ops, Block a, Block) { ops.writeBack(a, two.parameters, 1, two.all); });
  CHECK(two.replicas.values(1)[33] == 10.75f);
  Spread sum;
  two.after([&](MergeOps& ops, Block a, Block) {
    for (const auto& [values, about] : {std::pair(two.parameters, a), {a, two.parameters}}) {
      const auto [distance, norm] = ops.distance(values, about, two.all);
      sum.distance += distance;
      sum.norm += norm;
    }
  });
  double squares = 0;
  for (int i = 0; i < 40; ++i) squares += (i * i + (10 + i) * (10 + i)) / 16.0;
  CHECK(sum.distance == 2 * squares);
  CHECK(sum.norm == squares);
}

TEST_CASE(
    "calls for other numbers of workers, by impossible factors, or that would wait for ever are refused") {
  TwoReplicas two;
  MergeOps ops(two.exchange, 0, two.context), single(two.exchange, 0, two.context, MergeOps::Waiting::None),
      noSums(two.exchange, 0, two.context, MergeOps::Waiting::NoSums);
  const Block a = ops.own("a");
  const auto mean = [&](std::vector<double> weights, double keep = 0, bool later = false) {
    ops.mean(two.parameters, weights, a, two.all, keep, later);
  };
  CHECK_REFUSED(mean({1}), "mean: weights: expected one for each of 2 workers, got 1");
  CHECK_REFUSED(mean({1, -1}), "mean: weights must be finite and not negative, got -1");
  CHECK_REFUSED(mean({0, 0}), "mean: the weights sum to 0, so there is no mean");
  CHECK_REFUSED(mean({1, 1}, 1), "mean: keep must be in [0, 1), got 1");
  CHECK_REFUSED(mean({1, 1}, 0.5, true), "mean: keep must be 0 if the mean is formed later, got 0.5");
  CHECK_REFUSED(ops.combine(a, {{1, a.first(1)}}, two.all),
                "combine: values of an operand: expected one for each of 2 workers, got 1");
  CHECK_REFUSED(ops.writeBack(a, a, 1.5, two.all), "writeBack: keep must be between 0 and 1, got 1.5");
  const std::string waits = ": it makes participants wait for each other, which is not possible ";
  std::array<double, 1> sum{};
  CHECK_REFUSED(single.allReduce(sum), "allReduce" + waits + "before a round ends");
  CHECK_REFUSED(single.eachReplica(40, [](const Share&) {}), "eachReplica" + waits + "before a round ends");
  CHECK_REFUSED(noSums.allReduce(sum), "allReduce" + waits + "if workers arrive one by one");
}
