#include "muster/parallel/runtime/replica_thread.h"

#include "tests/parallel/one_segment.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

StateBlock block(std::string name, std::int64_t elements, BlockKind kind = BlockKind::Parameters) {
  return StateBlock::zeros(std::move(name), kind, MergeRule::Average, oneSegment(elements));
}

/// What a replica with the one block `mine` is refused for, beside a model with `theirs`.
std::string refusal(StateBlock& mine, StateBlock& theirs) {
  StateBlock *replica[] = {&mine}, *model[] = {&theirs};
  return thrown<InvalidArgument>([&] { requireCopy(replica, model, "the model's"); });
}

}  // namespace

TEST_CASE("a replica has the model's blocks in memory of its own") {
  StateBlock own = block("parameters", 3), models = block("parameters", 3);
  CHECK(refusal(own, models).empty());
  CHECK(refusal(models, models) ==
        "its block parameters shares memory with the model's; replicate() must make a copy");
}

TEST_CASE("a replica with other blocks is refused by name") {
  StateBlock models = block("parameters", 3);
  StateBlock longer = block("parameters", 4), renamed = block("weights", 3);
  StateBlock another = block("parameters", 3, BlockKind::Statistics);
  StateBlock precise = StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average,
                                         oneSegment(3), DType::Float64);
  for (StateBlock* const other : {&longer, &renamed, &another, &precise})
    CHECK(refusal(*other, models) == fmt::format("its block {}, {}, differs from the model's parameters, {}",
                                                 other->name, other->values.toString(),
                                                 models.values.toString()));

  StateBlock none = block("parameters", 3);
  none.segments = nullptr;
  CHECK(refusal(none, models) == "its block parameters has 0 segments, the model's 1");

  StateBlock* const model[] = {&models};
  CHECK_REFUSED(requireCopy({}, model, "the model's"), "it has 0 blocks, the model's 1");
}
