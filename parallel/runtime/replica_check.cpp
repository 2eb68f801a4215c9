#include "muster/parallel/runtime/replica_check.h"

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

std::vector<StateBlock*> blocksOf(Model& model) {
  std::vector<StateBlock*> all;
  for (auto& block : model.blocks()) all.push_back(&block);
  return all;
}

void requireCopy(std::span<StateBlock* const> replica, std::span<StateBlock* const> other,
                 std::string_view whose) {
  require(replica.size() == other.size(), "it has {} blocks, {} {}", replica.size(), whose, other.size());
  for (std::size_t b = 0; b < replica.size(); ++b) {
    const StateBlock &mine = *replica[b], &theirs = *other[b];
    const Tensor &x = mine.values, &y = theirs.values;
    require(mine.name == theirs.name && mine.kind == theirs.kind && x.shape() == y.shape() &&
                x.dtype() == y.dtype(),
            "its block {}, {}, differs from {} {}, {}", mine.name, x.toString(), whose, theirs.name,
            y.toString());
    requireSameSegments(mine, theirs, whose);
    require(!shareMemory(x, y), "its block {} shares memory with {}; replicate() must make a copy", mine.name,
            whose);
  }
}

}  // namespace muster
