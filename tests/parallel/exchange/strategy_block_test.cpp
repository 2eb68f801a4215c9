#include "muster/parallel/exchange/strategy_block.h"

#include "muster/parallel/exchange/host_exchange.h"
#include "muster/parallel/exchange/own_updates.h"
#include "tests/parallel/replicas.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

using Place = StrategyBlock::Place;

/// Three workers with five parameters each.
struct Three {
  explicit Three(int groups = 1) : exchange(replicas.states, UpdaterState::Average, groups) {}
  std::string refusal(const StrategyBlock& block) {
    return thrown<InvalidArgument>([&] { exchange.makeStrategyBlocks({&block, 1}); });
  }

  Replicas replicas{firstWorkers(3),
                    {{"parameters", BlockKind::Parameters, MergeRule::Average, 5}},
                    [](int, std::size_t, std::int64_t) { return 0.0; }};
  HostExchange exchange;
};

}  // namespace

TEST_CASE("a block is made once for all, for each sender or for each replica") {
  Three in(2);  // groups: workers 0 and 2, and worker 1
  in.exchange.makeStrategyBlocks(
      std::array{StrategyBlock{.name = "centre"}, StrategyBlock{.name = "sent", .place = Place::Node},
                 StrategyBlock{.name = "own", .place = Place::Replica, .dtype = DType::Float64}});
  const auto memory = [&](const char* name, std::size_t w) {
    return in.exchange.strategyBlock(name).values[w].raw();
  };
  CHECK(memory("centre", 1) == memory("centre", 0));
  CHECK(memory("centre", 2) == memory("centre", 0));
  CHECK(memory("sent", 1) != memory("sent", 0));
  CHECK(memory("sent", 2) == memory("sent", 0));
  CHECK(memory("own", 2) != memory("own", 0));
  CHECK(in.exchange.strategyBlock("centre").apart == 1);
  CHECK(in.exchange.strategyBlock("sent").apart == 2);
  CHECK(in.exchange.strategyBlock("own").apart == 3);
  CHECK((in.exchange.strategyBlock("sent").values[0].dtype() == DType::Float32));  // the parameters' type
  CHECK((in.exchange.strategyBlock("own").values[0].dtype() == DType::Float64));
  CHECK(in.exchange.strategyBlock("own").values[0].elements() == 5);
}

TEST_CASE("a block that cannot be made is refused by name") {
  Three in;
  CHECK(in.refusal({.name = ""}) == "strategy: each of its blocks needs a name of its own, got \"\" ");
  CHECK_REFUSED(
      in.exchange.makeStrategyBlocks(std::array{StrategyBlock{.name = "a"}, StrategyBlock{.name = "a"}}),
      "strategy: each of its blocks needs a name of its own, got \"a\" twice");
  CHECK(in.refusal({.name = "counts", .numbers = 2}) ==
        "strategy: block \"counts\" asks for 2 numbers, which a replica can have, and no merged copy");
  CHECK(in.refusal({.name = "ids", .dtype = DType::Int64}) ==
        "strategy: block \"ids\" must be float32 or float64");
  CHECK_REFUSED(in.exchange.strategyBlock("none"), "strategy: it has declared no block \"none\"");
}

TEST_CASE("each worker's own updates are two numbers in the block of that name") {
  Three in;
  CHECK(OwnUpdates::find(in.exchange, 1) == nullptr);
  in.exchange.makeStrategyBlocks(std::array{StrategyBlock{
      .name = std::string(kOwnUpdates), .place = Place::Replica, .numbers = OwnUpdates::kNumbers}});
  OwnUpdates* const own = OwnUpdates::find(in.exchange, 1);
  REQUIRE(own != nullptr);
  CHECK(own->count == 0);
  own->count = 7;
  own->mergedCopyReset = 1;
  const auto values = in.exchange.strategyBlock(kOwnUpdates).values[1].span<double>();
  CHECK(values[0] == 7);
  CHECK(values[1] == 1);
  CHECK(OwnUpdates::find(in.exchange, 0)->count == 0);
}

TEST_CASE("what a merge does with the updater's state is one of three choices") {
  for (const auto& one : EnumNames<UpdaterState>::kNames) CHECK_NOTHROW(validate(one.first));
  CHECK_REFUSED(validate(static_cast<UpdaterState>(3)), "updaterState: there is no choice 3");
}

TEST_CASE("participants are dealt to the nodes in turn") {
  const Topology second{.participants = 5, .node = 1, .nodes = 2};
  for (std::size_t p = 0; p < 5; ++p) CHECK(second.isHere(p) == (p % 2 == 1));
  CHECK(Topology{.participants = 3}.isHere(2));
}
