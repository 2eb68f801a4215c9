#include "muster/parallel/nodes/host_mirrors.h"

#include <doctest/doctest.h>

#include "tests/parallel/one_segment.h"

using namespace muster;
using muster::test::oneSegment;

namespace {

using Numbers = std::vector<float>;
enum Block : std::size_t { kParameters, kStatistics, kVelocity, kOwn, kGradients };

/// A replica, its mirror, and the blocks that a strategy would see.
struct Mirrored {
  explicit Mirrored(HostMirrors::Options options) : mirrors(make(), std::move(options)) {
    shared = sharedBlocks(mirrors.states(), UpdaterState::Average, std::vector<std::size_t>(1));
    mirrors.plan(shared);
    fillReplica(0);
    fillMirror(0);
  }

  std::vector<std::vector<StateBlock*>> make() {
    const auto add = [&](std::string name, BlockKind kind, MergeRule rule) {
      blocks.push_back(StateBlock::zeros(std::move(name), kind, rule, oneSegment(4)));
    };
    add("parameters", BlockKind::Parameters, MergeRule::Average);
    add("statistics", BlockKind::Statistics, MergeRule::Moments);
    add("velocity", BlockKind::UpdaterState, MergeRule::Average);
    add("own", BlockKind::Statistics, MergeRule::Keep);
    add("gradients", BlockKind::Gradients, MergeRule::Keep);
    std::vector<StateBlock*> state;
    for (StateBlock& block : blocks) state.push_back(&block);
    return {state};
  }

  static void set(const Tensor& values, float value) { std::ranges::fill(values.span<float>(), value); }
  void fillReplica(float value) const {
    for (const StateBlock& block : blocks) set(block.values, value);
  }
  void fillMirror(float value) const {
    for (const SharedBlock& block : shared) set(block.replicas.front(), value);
  }
  /// A number of each block.
  Numbers replica() const {
    Numbers numbers;
    for (const StateBlock& block : blocks) numbers.push_back(block.values.data<float>()[3]);
    return numbers;
  }
  Numbers mirror() const {
    Numbers numbers;
    for (const SharedBlock& block : shared) numbers.push_back(block.replicas.front().data<float>()[3]);
    return numbers;
  }

  std::vector<StateBlock> blocks;  // of the replica; before `mirrors`, which is made of it
  HostMirrors mirrors;
  std::vector<SharedBlock> shared;
  Context context;
};

bool isMerged(const SharedBlock& block) {
  return block.rule != MergeRule::Keep && block.kind != BlockKind::Gradients;
}

bool isReduced(const SharedBlock& block) {
  return block.kind == BlockKind::Gradients || block.rule == MergeRule::Moments;
}

}  // namespace

TEST_CASE("ops write mirrors, and a replica takes changed blocks after its worker continues") {
  Mirrored m({.uses = isMerged});
  m.fillReplica(1);
  m.mirrors.arrive(0, m.context);
  CHECK(m.mirror() == Numbers{1, 1, 1, 0, 0});
  m.mirrors.begin(0);
  m.fillMirror(2);
  CHECK(m.replica() == Numbers{1, 1, 1, 1, 1});
  m.mirrors.enqueueAfter(0, m.context);
  CHECK(m.replica() == Numbers{2, 2, 2, 1, 1});
}

TEST_CASE("a round copies a replica to its mirror once, and back only if ops have begun") {
  Mirrored m({.uses = isMerged});
  m.fillReplica(1);
  m.mirrors.arrive(0, m.context);
  Mirrored::set(m.shared[kParameters].replicas.front(), 5);  // prepared as a contribution
  m.mirrors.arrive(0, m.context);
  CHECK(m.mirror() == Numbers{5, 1, 1, 0, 0});
  m.mirrors.enqueueAfter(0, m.context);
  CHECK(m.replica() == Numbers{1, 1, 1, 1, 1});
  m.fillReplica(3);
  m.mirrors.arrive(0, m.context);
  CHECK(m.mirror() == Numbers{3, 3, 3, 0, 0});
}

TEST_CASE("with gradients a replica gets them before its update, and statistics after it") {
  Mirrored m({.uses = isReduced, .gradients = true});
  for (const float round : {10.0F, 20.0F}) {
    m.fillReplica(round);
    m.mirrors.arrive(0, m.context);
    m.mirrors.begin(0);
    Mirrored::set(m.shared[kGradients].replicas.front(), round + 1);
    m.mirrors.enqueueAfter(0, m.context);
    CHECK(m.replica() == Numbers{round, round, round, round, round + 1});
    Mirrored::set(m.shared[kStatistics].replicas.front(), round + 2);
    Mirrored::set(m.blocks[kParameters].values, round + 3);  // the update
    m.mirrors.arrive(0, m.context);
    m.mirrors.refresh();
    CHECK(m.mirror() == Numbers{round + 3, round + 2, round, round, round + 1});
    m.mirrors.enqueueAfter(0, m.context);
    CHECK(m.replica() == Numbers{round + 3, round + 2, round, round, round + 1});
  }
}

TEST_CASE("refresh() reads the blocks that change without ops; load() writes all except gradients") {
  Mirrored m({.uses = isMerged});
  m.fillReplica(1);
  m.mirrors.refresh();
  CHECK(m.mirror() == Numbers{0, 0, 0, 1, 0});
  m.fillMirror(2);
  m.mirrors.load();
  CHECK(m.replica() == Numbers{2, 2, 2, 2, 1});
}

TEST_CASE("load() forgets the round in progress") {
  Mirrored m({.uses = isReduced, .gradients = true});
  m.mirrors.arrive(0, m.context);
  m.mirrors.begin(0);
  m.mirrors.enqueueAfter(0, m.context);
  m.mirrors.load();
  m.fillReplica(1);
  m.mirrors.arrive(0, m.context);
  CHECK(m.mirror() == Numbers{0, 1, 0, 0, 1});
}
