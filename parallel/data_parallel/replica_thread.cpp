#include "muster/parallel/data_parallel/replica_thread.h"

#include "muster/core/base/error.h"

namespace muster {
namespace {

void requireSameSegments(const StateBlock& mine, const StateBlock& theirs, std::string_view whose) {
  static const std::vector<Segment> none;
  const auto& a = mine.segments ? mine.segments->segments : none;
  const auto& b = theirs.segments ? theirs.segments->segments : none;
  require(a.size() == b.size(), "its block {} has {} segments, {} {}", mine.name, a.size(), whose, b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    require(a[i].name == b[i].name && a[i].shape == b[i].shape && a[i].offset == b[i].offset,
            "its {} {} in the block {} differs from {} {} {}", a[i].name, a[i].shape.toString(), mine.name,
            whose, b[i].name, b[i].shape.toString());
}

}  // namespace

ModelBlocks::ModelBlocks(Model& model) : gradients(model.block(BlockKind::Gradients).values) {
  const Tensor& parameters = model.block(BlockKind::Parameters).values;
  require(gradients.shape() == parameters.shape() && gradients.dtype() == parameters.dtype(),
          "the model's gradients are {}, its parameters {}", gradients.toString(), parameters.toString());
  for (const auto& block : model.blocks()) {
    if (block.kind != BlockKind::Gradients) state.push_back(block.values);
    if (block.kind == BlockKind::Statistics) statistics.push_back(block.values);
  }
}

ReplicaThread::ReplicaThread(int number, Placement where)
    : index(number), placement(std::move(where)), thread([this] {
        model.reset();
        context.reset();
      }) {}

std::string ReplicaThread::name() const {
  return fmt::format("replica {} on {}", index, placement.device.toString());
}

void ReplicaThread::load(const ModelBlocks& truth) {
  for (std::size_t b = 0; b < truth.state.size(); ++b) copy(truth.state[b], blocks.state[b], *context);
  stale = false;
}

void requireCopy(Model& replica, Model& other, std::string_view whose) {
  const auto mine = replica.blocks(), theirs = other.blocks();
  require(mine.size() == theirs.size(), "it has {} blocks, {} {}", mine.size(), whose, theirs.size());
  for (std::size_t b = 0; b < mine.size(); ++b) {
    const Tensor &x = mine[b].values, &y = theirs[b].values;
    require(mine[b].name == theirs[b].name && mine[b].kind == theirs[b].kind && x.shape() == y.shape() &&
                x.dtype() == y.dtype(),
            "its block {}, {}, differs from {} {}, {}", mine[b].name, x.toString(), whose, theirs[b].name,
            y.toString());
    requireSameSegments(mine[b], theirs[b], whose);
    require(!shareMemory(x, y), "its block {} lies in the memory of {}; replicate() must make a copy",
            mine[b].name, whose);
  }
}

}  // namespace muster
