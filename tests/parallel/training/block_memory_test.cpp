#include "muster/parallel/training/block_memory.h"

#include "tests/support/one_block_model.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Its parameters move to other memory: once, or each time that they are asked for.
struct Moving final : OneBlockModel {
  using OneBlockModel::OneBlockModel;
  std::unique_ptr<Model> replicate(Context& context) const override {
    return std::make_unique<Moving>(&context);
  }
  std::span<StateBlock> blocks() override {
    if (always) move();
    return OneBlockModel::blocks();
  }
  void move() { blocks_.front().values = cloneTensor(blocks_.front().values); }
  bool always = false;
};

/// Two replicas, whose memory is known.
struct Two {
  Two() {
    for (auto* thread : threads) {
      runOnAll({&thread, 1}, "could not be made", [&](ReplicaThread& t) { t.makeReplica(model); });
      memory.add(sharedState(thread->replica()));
    }
  }
  std::string problem() {
    return thrown<InvalidArgument>([&] { memory.requireSame(model, threads); });
  }

  Moving model;
  ReplicaThread first{"worker", 0, {}, 1}, second{"worker", 1, {}, 1};
  std::vector<ReplicaThread*> threads{&first, &second};
  BlockMemory memory;
};

}  // namespace

TEST_CASE("counters are not merged") {
  OneBlockModel model;
  CHECK(model.state().back()->kind == BlockKind::Counters);
  for (const auto* block : sharedState(model)) CHECK(block->kind != BlockKind::Counters);
  CHECK(sharedState(model).size() + 1 == model.state().size());
}

TEST_CASE("blocks in other memory than before are refused, naming the model or the worker") {
  Two two;
  CHECK(two.problem() == "");
  dynamic_cast<Moving&>(two.second.replica()).move();
  CHECK(
      two.problem().starts_with("the block parameters of the replica of worker 1 on cpu is in other memory"));
  Two other;
  other.model.move();  // the user's model may move between two calls
  CHECK(other.problem() == "");
  other.model.always = true;
  CHECK(other.problem().starts_with("the block parameters of the model is in other memory than before"));
}
