#include "muster/parallel/exchange/merge_undo.h"

#include <doctest/doctest.h>

#include "muster/parallel/exchange/host_exchange.h"
#include "muster/parallel/exchange/strategy_block.h"
#include "tests/parallel/replicas.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Two replicas, and a strategy with a block of each kind.
struct Blocks {
  explicit Blocks(std::int64_t elements)
      : replicas({0, 1},
                 {{"parameters", BlockKind::Parameters, MergeRule::Average, elements},
                  {"gradients", BlockKind::Gradients, MergeRule::Keep, elements},
                  {"statistics", BlockKind::Statistics, MergeRule::Average, elements},
                  {"velocity", BlockKind::UpdaterState, MergeRule::Average, elements}},
                 [](int, std::size_t, std::int64_t) { return 0.0; }),
        exchange(replicas.states, UpdaterState::Average) {
    using Place = StrategyBlock::Place;
    exchange.makeStrategyBlocks(std::array{StrategyBlock{.name = "centre"},
                                           StrategyBlock{.name = "scratch", .saved = false},
                                           StrategyBlock{.name = "launched", .inFlight = true},
                                           StrategyBlock{.name = "residual", .place = Place::Replica}});
  }
  std::span<float> merged(std::size_t block) {
    return Tensor(exchange.blocks()[block].mergedCopy()).span<float>();
  }
  std::span<float> centre() { return Tensor(exchange.strategyBlock("centre").values.front()).span<float>(); }

  Replicas replicas;
  HostExchange exchange;
};

std::string names(const MergeUndo& undo) {
  std::string all;
  for (const auto& copy : undo.copies()) all += copy.name + " ";
  return all;
}

}  // namespace

TEST_CASE("what a merge overwrites and a checkpoint needs is kept") {
  Blocks blocks(3);
  MergeUndo onDemand(blocks.exchange, {});
  CHECK_FALSE(onDemand.rollBack());
  CHECK(names(onDemand).empty());
  onDemand.keepAll();
  CHECK(names(onDemand) == "parameters statistics velocity centre ");
  CHECK(onDemand.rollBack());
  const MergeUndo all(blocks.exchange, {.everyMerge = true});
  CHECK(names(all) == "parameters statistics velocity centre ");
  const MergeUndo statistics(blocks.exchange, {.everyMerge = true, .allState = false});
  CHECK(names(statistics) == "statistics centre ");
}

TEST_CASE("each participant's part is kept by itself, and all are restored") {
  Blocks blocks(40);
  const auto fill = [&](float value) {
    std::ranges::fill(blocks.merged(0), value);
    std::ranges::fill(blocks.centre(), value);
  };
  fill(1);
  MergeUndo undo(blocks.exchange, {.everyMerge = true});  // keeps 1
  fill(2);
  undo.keep(1);  // the second half keeps 2
  fill(3);
  CHECK(undo.rollBack());
  for (const auto values : {blocks.merged(0), blocks.centre()}) {
    CHECK(values.front() == 1);
    CHECK(values.back() == 2);
  }
  fill(4);
  undo.keepAll();
  fill(5);
  CHECK(undo.rollBack());
  CHECK(std::ranges::all_of(blocks.merged(0), [](float x) { return x == 4; }));
}
