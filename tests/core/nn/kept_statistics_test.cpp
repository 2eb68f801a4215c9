#include "muster/core/nn/step/kept_statistics.h"

#include "muster/core/device/context.h"
#include "tests/support/test.h"

namespace muster {
namespace {

StateBlock block(BlockKind kind) {
  auto table = std::make_shared<SegmentTable>();
  table->add({.name = "w", .shape = {3}});
  return StateBlock::zeros("block", kind, MergeRule::Average, table);
}

void fill(std::vector<StateBlock>& blocks, float value) {
  for (auto& one : blocks) std::ranges::fill(one.values.span<float>(), value);
}

TEST_CASE("statistics are kept and restored, other blocks are left alone, at each step anew") {
  Context context;
  detail::KeptStatistics kept;
  std::vector<StateBlock> blocks;
  for (const auto kind : {BlockKind::Parameters, BlockKind::Gradients, BlockKind::Statistics})
    blocks.push_back(block(kind));
  for (const float value : {1.0f, 2.0f}) {
    fill(blocks, value);
    kept.keep(blocks, context);
    fill(blocks, 9);
    kept.restore(blocks, context);
    CHECK(blocks[0].values.span<float>()[2] == 9);
    CHECK(blocks[1].values.span<float>()[2] == 9);
    CHECK(blocks[2].values.span<float>()[2] == value);
  }
}

TEST_CASE("without statistics, and without a step before, nothing is restored") {
  Context context;
  detail::KeptStatistics kept;
  std::vector<StateBlock> blocks{block(BlockKind::Parameters), block(BlockKind::Statistics)};
  fill(blocks, 9);
  kept.restore(blocks, context);
  CHECK(blocks[1].values.span<float>()[0] == 9);
  const std::span first(blocks.data(), 1);
  kept.keep(first, context);
  fill(blocks, 5);
  kept.restore(first, context);
  CHECK(blocks[0].values.span<float>()[0] == 5);
}

}  // namespace
}  // namespace muster
