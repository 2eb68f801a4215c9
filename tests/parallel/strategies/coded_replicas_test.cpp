#include "muster/parallel/strategies/coded_replicas.h"

#include "muster/parallel/exchange/host_exchange.h"
#include "tests/parallel/replicas.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Workers with three parameters each.
struct Workers {
  Workers(const Codec& codec, std::vector<std::vector<double>> values, int groups = 1)
      : sending(codec),
        replicas(firstWorkers(static_cast<int>(values.size())),
                 {{"parameters", BlockKind::Parameters, MergeRule::Average, 3}},
                 [&](int w, std::size_t, std::int64_t i) {
                   return values[static_cast<std::size_t>(w)][static_cast<std::size_t>(i)];
                 }),
        exchange(replicas.states, UpdaterState::Average, groups) {
    std::vector<StrategyBlock> blocks{{.name = "mean"}};
    sending.declare(blocks, /*means=*/true);
    exchange.makeStrategyBlocks(blocks);
    sending.begin(exchange, std::span(&all, 1));
  }
  /// @return the mean of what is sent, and the bytes of worker 0.
  std::pair<std::vector<float>, std::int64_t> mean(const std::vector<double>& weights) {
    std::int64_t bytes = 0;
    std::vector<std::jthread> threads;
    for (int p = 0; p < exchange.participants(); ++p)
      threads.emplace_back([&, p] {
        Context context;
        MergeOps ops(exchange, p, context);
        sending.mean(weights, {}, 1, all, ops.own("mean"), ops);
        if (p == 0) bytes = ops.bytes();
      });
    threads.clear();
    const auto values = exchange.strategyBlock("mean").values.front().span<float>();
    return {{values.begin(), values.end()}, bytes};
  }

  CodedReplicas sending;
  Replicas replicas;
  HostExchange exchange;
  const Fragment all = Fragment::whole(3);
};

using Mean = std::pair<std::vector<float>, std::int64_t>;

}  // namespace

TEST_CASE("a codec needs blocks for each replica or sender, and memory for means and other nodes") {
  const std::pair<Codec, std::string> cases[] = {
      {WholeReplicas{}, ""},
      {Int8Codec{}, "coded replicas, coding residual, "},
      {PowerSgdCodec{}, "coded replicas, coding residual, factors, mean factors, "},
  };
  for (const auto& [codec, names] : cases)
    for (const bool means : {false, true}) {
      std::vector<StrategyBlock> blocks;
      CodedReplicas(codec).declare(blocks, means);
      std::string text;
      for (const auto& block : blocks) text += block.name + ", ";
      CHECK(text == names);
      if (!blocks.empty()) CHECK((blocks[0].place == StrategyBlock::Place::Node) == means);
      for (const bool together : {false, true}) {
        const auto memory = muster::detail::codedMemory(blocks, together);
        const bool any = means && !blocks.empty();
        CHECK(memory.any == any);
        CHECK(memory.ofSender == (any && together ? 1 : 0));
        CHECK(memory.ofNode == (any && contains(names, "factors") ? 1 : 0));
        CHECK(memory.ofOtherNode == (any ? 1 : 0));
      }
    }
}

TEST_CASE("what is not sent is kept for the next time, and a worker of weight 0 sends nothing") {
  // The largest of three: -4 and 3, then 6 and 4, which are the third twice, then of worker 1 alone 2 * 3.
  Workers two(TopKCodec{.share = 0.3}, {{1, -4, 3}, {3, 0, 2}});
  CHECK(two.mean({1, 1}) == Mean{{1.5f, -2, 0}, 8});
  CHECK(two.mean({1, 1}) == Mean{{0, 0, 5}, 8});
  CHECK(two.mean({0, 2}) == Mean{{6, 0, 0}, 0});
  Workers whole(WholeReplicas{}, {{1, -4, 3}, {3, 0, 2}});
  CHECK(whole.mean({1, 3}) == Mean{{2.5f, -1, 2.25f}, 12});
}

TEST_CASE("in groups, a group sends the mean of its workers, with the sum of their weights") {
  // Workers 0 and 2: (1 * 1 + 3 * 5) / 4 = 4 in the last place; worker 1 alone: 1 in the first one.
  Workers three(TopKCodec{.share = 0.3}, {{0, 0, 1}, {1, 0, 0}, {0, 0, 5}}, /*groups=*/2);
  CHECK(three.mean({1, 4, 3}).first == std::vector<float>{0.5f, 0, 2});
}
