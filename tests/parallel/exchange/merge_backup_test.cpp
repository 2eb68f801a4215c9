#include "muster/parallel/exchange/merge_backup.h"

#include <doctest/doctest.h>

#include "muster/parallel/exchange/host_exchange.h"
#include "muster/parallel/exchange/strategy_block.h"
#include "tests/parallel/replicas.h"

using namespace muster;
using namespace muster::test;

namespace {

/// One replica, and a strategy with a block of each kind.
struct Blocks {
  explicit Blocks(std::int64_t elements)
      : replicas({0},
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

std::string names(const MergeBackup& backup) {
  std::string all;
  for (const auto& copy : backup.copies()) all += copy.name + " ";
  return all;
}

}  // namespace

TEST_CASE("a backup holds what a merge overwrites and a checkpoint needs") {
  Blocks blocks(3);
  MergeBackup all, statistics;
  CHECK_FALSE(all.made());
  all.make(blocks.exchange);
  CHECK(all.made());
  CHECK(names(all) == "parameters statistics velocity centre ");
  statistics.make(blocks.exchange, /*statisticsAlone=*/true);
  CHECK(names(statistics) == "statistics centre ");
}

TEST_CASE("each part of a backup is kept by itself, and all are restored") {
  Blocks blocks(40);
  const auto fill = [&](float value) {
    std::ranges::fill(blocks.merged(0), value);
    std::ranges::fill(blocks.centre(), value);
  };
  MergeBackup backup;
  fill(1);
  backup.make(blocks.exchange);  // keeps 1
  fill(2);
  backup.keep(1, 2);  // the second half keeps 2
  fill(3);
  backup.restore();
  for (const auto values : {blocks.merged(0), blocks.centre()}) {
    CHECK(values.front() == 1);
    CHECK(values.back() == 2);
  }
  fill(4);
  Context context;
  backup.keep(context);
  fill(5);
  backup.restore(context);
  CHECK(std::ranges::all_of(blocks.merged(0), [](float x) { return x == 4; }));
}
