#include "muster/parallel/training/block_memory.h"

#include "tests/support/moving_model.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

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

  MovingModel model;
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
  dynamic_cast<MovingModel&>(two.second.replica()).move();
  CHECK(
      two.problem().starts_with("the block parameters of the replica of worker 1 on cpu is in other memory"));
  Two other;
  other.model.move();  // the user's model may move between two calls
  CHECK(other.problem() == "");
  other.model.always = true;
  CHECK(other.problem().starts_with("the block parameters of the model is in other memory than before"));
}
