#include "muster/core/optim/state_block.h"

#include "tests/support/test.h"

using namespace muster;

TEST_CASE("segments begin at multiples of 64 bytes") {
  SegmentTable table;
  table.add({.name = "weight", .shape = {20, 1, 5, 5}});
  table.add({.name = "bias", .shape = {20}});
  table.add({.name = "scalar", .shape = {}});
  table.add({.name = "nothing", .shape = {0}});
  table.add({.name = "last", .shape = {16}});
  CHECK(table.find("weight")->offset == 0);
  CHECK(table.find("bias")->offset == 512);  // 500, rounded up to 16
  CHECK(table.find("scalar")->offset == 544);
  CHECK(table.find("nothing")->offset == 560);
  CHECK(table.find("last")->offset == 560);
  CHECK(table.elements == 576);
  CHECK(table.find("weights") == nullptr);
}

TEST_CASE("a new block consists of zeros, and has views of its segments") {
  auto table = std::make_shared<SegmentTable>();
  table->add({.name = "a", .shape = {2, 3}});
  table->add({.name = "b", .shape = {4}});
  const StateBlock block = StateBlock::zeros("velocity", BlockKind::UpdaterState, MergeRule::Average, table);
  CHECK(block.values.shape() == Shape{32});
  CHECK(reinterpret_cast<std::uintptr_t>(block.values.raw()) % 64 == 0);
  for (const float value : block.values.span<float>()) CHECK(value == 0);
  CHECK(block.segment("a").shape() == Shape{2, 3});
  block.segment("b").data<float>()[3] = 5;
  CHECK(block.values.data<float>()[19] == 5);
  CHECK_REFUSED(block.segment("c"), "block velocity: there is no segment c");
}
