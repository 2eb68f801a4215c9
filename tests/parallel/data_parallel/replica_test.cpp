#include "muster/parallel/data_parallel/replica.h"

#include "tests/support/thrown.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Replicas of a toy model of 20 parameters with statistics.
struct Made {
  explicit Made(int count) : sums(count) {
    for (int i = 0; i < count; ++i) all.push_back(std::make_unique<Replica>(i, Placement{}, 1, sums));
    runOnAll(all, "could not be made", [&](Replica& replica) {
      replica.thread.makeReplica(model);
      replica.blocks = ModelBlocks(replica.thread.replica());
    });
  }
  ToyModel& model0() { return dynamic_cast<ToyModel&>(all[0]->thread.replica()); }

  ToyModel model{{.size = 20, .statistics = true}};
  PeerSums sums;
  std::vector<std::unique_ptr<Replica>> all;
};

}  // namespace

TEST_CASE("a replica takes what has changed: all after an update, or its own statistics") {
  Made made(1);
  Replica& replica = *made.all[0];
  const ModelBlocks users(made.model);
  CHECK(users.state.size() == 2);
  CHECK(users.statistics.size() == 1);
  made.model.setParameters(std::vector<float>(20, 3));
  replica.load(users, /*train=*/true);
  CHECK(made.model0().parameters().front() == 3);
  Tensor(replica.blocks.statistics[0]).data<float>()[0] = 9;  // its pass moves them
  made.model0().setParameters(std::vector<float>(20, 5));
  replica.load(users, /*train=*/false);
  CHECK(made.model0().statistics().front() == 0);
  CHECK(made.model0().parameters().front() == 5);  // the user's have not changed
  replica.stale = true;
  replica.load(users, false);
  CHECK(made.model0().parameters().front() == 3);
}

TEST_CASE("gradients are added to the model's, in the order of the replicas") {
  Made made(3);
  Tensor total = made.model.block(BlockKind::Gradients).values;
  total.span<float>()[19] = 1;
  for (int i = 0; i < 3; ++i) made.all[static_cast<std::size_t>(i)]->bringGradients(Device::cpu());
  for (auto& replica : made.all)
    replica->blocks.gradients.span<float>()[19] = static_cast<float>(10 * (1 + replica->thread.index()));
  addGradients(made.all, total, made.model.context());
  CHECK(total.span<float>()[19] == 61);
  CHECK(total.span<float>()[0] == 0);
}

TEST_CASE("shards are placed one after the other, and must fit") {
  Made made(2);
  made.all[0]->output = Tensor::zeros({2, 3});
  made.all[1]->output = Tensor::zeros({1, 3});
  Tensor whole;
  joinShards(made.all, 0, &Replica::output, &Replica::outputPart, "output", whole);
  CHECK(whole.shape() == Shape{3, 3});
  CHECK(made.all[1]->outputPart.begin == 2);
  CHECK(made.all[1]->outputPart.size == 1);
  made.all[1]->output = Tensor::zeros({1, 4});
  CHECK(thrown<InvalidArgument>([&] {
          joinShards(made.all, 0, &Replica::output, &Replica::outputPart, "output", whole);
        }).ends_with("they cannot be concatenated along dimension 0"));
}
