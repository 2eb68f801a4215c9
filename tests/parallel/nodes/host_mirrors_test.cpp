#include "muster/parallel/nodes/host_mirrors.h"

#include <doctest/doctest.h>

#include "tests/parallel/one_segment.h"

using namespace muster;
using muster::test::oneSegment;

namespace {

enum Block : std::size_t { kParameters, kStatistics, kVelocity, kOwn, kGradients };

/// A replica, its mirror, and the blocks that a strategy would see.
struct Mirrored {
  explicit Mirrored(HostMirrors::Options options) : mirrors(make(), std::move(options)) {
    shared = sharedBlocks(mirrors.states(), UpdaterState::Average, std::vector<int>(1));
    mirrors.plan(shared);
    fill(replica(), 0);
    for (const SharedBlock& block : shared) set(block.replicas.front(), 0);
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

  static void set(const Tensor& values, float value) {
    for (float& one : values.span<float>()) one = value;
  }
  std::vector<Tensor> replica() const {
    std::vector<Tensor> values;
    for (const StateBlock& block : blocks) values.push_back(block.values);
    return values;
  }
  std::vector<Tensor> mirror() const {
    std::vector<Tensor> values;
    for (const SharedBlock& block : shared) values.push_back(block.replicas.front());
    return values;
  }
  static void fill(const std::vector<Tensor>& values, float value) {
    for (const Tensor& one : values) set(one, value);
  }
  static std::vector<float> firsts(const std::vector<Tensor>& values) {
    std::vector<float> numbers;
    for (const Tensor& one : values) numbers.push_back(one.span<float>()[3]);
    return numbers;
  }

  std::vector<StateBlock> blocks;  // of the replica; before `mirrors`, which is made of it
  HostMirrors mirrors;
  std::vector<SharedBlock> shared;
};

bool isMerged(const SharedBlock& block) {
  return block.rule != MergeRule::Keep && block.kind != BlockKind::Gradients;
}

bool isReduced(const SharedBlock& block) {
  return block.kind == BlockKind::Gradients || block.rule == MergeRule::Moments;
}

using Numbers = std::vector<float>;

}  // namespace

TEST_CASE("ops write mirrors, and a replica takes changed blocks after its worker continues") {
  Mirrored m({.uses = isMerged});
  Context context;
  Mirrored::fill(m.replica(), 1);
  m.mirrors.arrive(0, context);
  CHECK(Mirrored::firsts(m.mirror()) == Numbers{1, 1, 1, 0, 0});
  m.mirrors.begin(0);
  Mirrored::fill(m.mirror(), 2);
  CHECK(Mirrored::firsts(m.replica()) == Numbers{1, 1, 1, 1, 1});
  m.mirrors.enqueueAfter(0, context);
  CHECK(Mirrored::firsts(m.replica()) == Numbers{2, 2, 2, 1, 1});
}

TEST_CASE("a round copies a replica to its mirror once, and back only if ops have begun") {
  Mirrored m({.uses = isMerged});
  Context context;
  Mirrored::fill(m.replica(), 1);
  m.mirrors.arrive(0, context);
  Mirrored::set(m.mirror()[kParameters], 5);  // prepared as a contribution
  m.mirrors.arrive(0, context);
  CHECK(Mirrored::firsts(m.mirror()) == Numbers{5, 1, 1, 0, 0});
  m.mirrors.enqueueAfter(0, context);
  CHECK(Mirrored::firsts(m.replica()) == Numbers{1, 1, 1, 1, 1});
  Mirrored::fill(m.replica(), 3);
  m.mirrors.arrive(0, context);
  CHECK(Mirrored::firsts(m.mirror()) == Numbers{3, 3, 3, 0, 0});
}

TEST_CASE("with gradients a replica gets them before its update, and statistics after it") {
  Mirrored m({.uses = isReduced, .gradients = true});
  Context context;
  for (const float round : {10.0F, 20.0F}) {
    Mirrored::fill(m.replica(), round);
    m.mirrors.arrive(0, context);
    m.mirrors.begin(0);
    Mirrored::set(m.mirror()[kGradients], round + 1);
    m.mirrors.enqueueAfter(0, context);
    CHECK(Mirrored::firsts(m.replica()) == Numbers{round, round, round, round, round + 1});
    Mirrored::set(m.mirror()[kStatistics], round + 2);
    Mirrored::set(m.replica()[kParameters], round + 3);  // the update
    m.mirrors.arrive(0, context);
    m.mirrors.refresh();
    CHECK(Mirrored::firsts(m.mirror()) == Numbers{round + 3, round + 2, round, round, round + 1});
    m.mirrors.enqueueAfter(0, context);
    CHECK(Mirrored::firsts(m.replica()) == Numbers{round + 3, round + 2, round, round, round + 1});
  }
}

TEST_CASE("refresh() reads the blocks that change without ops; load() writes all except gradients") {
  Mirrored m({.uses = isMerged});
  Mirrored::fill(m.replica(), 1);
  m.mirrors.refresh();
  CHECK(Mirrored::firsts(m.mirror()) == Numbers{0, 0, 0, 1, 0});
  Mirrored::fill(m.mirror(), 2);
  m.mirrors.load();
  CHECK(Mirrored::firsts(m.replica()) == Numbers{2, 2, 2, 2, 1});
}

TEST_CASE("load() forgets the round in progress") {
  Mirrored m({.uses = isReduced, .gradients = true});
  Context context;
  m.mirrors.arrive(0, context);
  m.mirrors.begin(0);
  m.mirrors.enqueueAfter(0, context);
  m.mirrors.load();
  Mirrored::fill(m.replica(), 1);
  m.mirrors.arrive(0, context);
  CHECK(Mirrored::firsts(m.mirror()) == Numbers{0, 1, 0, 0, 1});
}
