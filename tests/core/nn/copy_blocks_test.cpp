#include "muster/core/nn/compile/copy_blocks.h"

#include "tests/support/test.h"

namespace muster {
namespace {

/// A block of two numbers.
StateBlock block(std::string name, BlockKind kind, float value, std::int64_t size = 2) {
  auto table = std::make_shared<SegmentTable>();
  table->add({.name = "w", .shape = {size}});
  auto made = StateBlock::zeros(std::move(name), kind, MergeRule::Average, table);
  std::ranges::fill(made.values.span<float>(), value);
  return made;
}

struct Blocks {
  std::vector<StateBlock> all;
  explicit Blocks(float first)
      : all{block("parameters", BlockKind::Parameters, first),
            block("gradients", BlockKind::Gradients, first + 1),
            block("statistics", BlockKind::Statistics, first + 2),
            block("velocity", BlockKind::UpdaterState, first + 3)} {}
  std::vector<StateBlock*> pointers() {
    std::vector<StateBlock*> result;
    for (auto& one : all) result.push_back(&one);
    return result;
  }
  std::vector<float> values() const {
    std::vector<float> result;
    for (const auto& one : all) result.push_back(one.values.span<float>()[1]);
    return result;
  }
};

TEST_CASE("blocks are copied but for gradients, and the updater's state if it is asked for") {
  for (const bool withUpdater : {true, false}) {
    Blocks from(1), to(10);
    detail::copyBlocks(from.pointers(), to.pointers(), withUpdater);
    CHECK(to.values() == std::vector<float>{1, 11, 3, withUpdater ? 4.0f : 13.0f});
    CHECK(from.values() == std::vector<float>{1, 2, 3, 4});
  }
}

TEST_CASE("blocks that differ are refused with their names and shapes") {
  Blocks from(1), fewer(1), other(1);
  fewer.all.pop_back();
  CHECK_REFUSED(detail::copyBlocks(from.pointers(), fewer.pointers(), true),
                "model: one has 3 state blocks, the other 4");
  other.all[3] = block("moments", BlockKind::UpdaterState, 0);
  CHECK_REFUSED(detail::copyBlocks(from.pointers(), other.pointers(), true),
                "model: block velocity [16] cannot be copied to block moments [16]");
  other.all[3] = block("velocity", BlockKind::UpdaterState, 0, 17);
  CHECK_REFUSED(detail::copyBlocks(from.pointers(), other.pointers(), false),
                "model: block velocity [16] cannot be copied to block velocity [32]");
}

}  // namespace
}  // namespace muster
