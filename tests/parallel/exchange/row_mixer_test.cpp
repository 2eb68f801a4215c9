#include "muster/parallel/exchange/row_mixer.h"

#include <doctest/doctest.h>

#include "muster/core/ops/non_finite.h"
#include "muster/parallel/exchange/host_exchange.h"
#include "tests/parallel/replicas.h"

using namespace muster;
using namespace muster::test;

namespace {

using Values = std::vector<float>;

/// Two replicas of one block, and a mixer of them.
struct Two {
  Two(MergeRule rule, const Values& first, const Values& second)
      : replicas({0, 1},
                 {{"block", rule == MergeRule::Moments ? BlockKind::Statistics : BlockKind::Parameters, rule,
                   static_cast<std::int64_t>(first.size())}},
                 [&](int w, std::size_t, std::int64_t i) {
                   return (w == 0 ? first : second)[static_cast<std::size_t>(i)];
                 }),
        exchange(replicas.states, UpdaterState::Average) {}

  const SharedBlock& block() const { return exchange.blocks().front(); }
  Values of(std::size_t worker) const {
    const Tensor& values = block().replicas[worker];
    return {values.data<float>(), values.data<float>() + values.elements()};
  }
  void begin(Slice slice) { mixer.begin(block(), slice, scratch, context); }
  void readBoth() {
    for (const std::size_t w : {0, 1}) mixer.read(w);
  }

  Replicas replicas;
  HostExchange exchange;
  Context context;
  const Tensor scratch = Tensor::empty({1 << 12}, DType::UInt8);
  RowMixer mixer{2};
};

/// Row 0: half of each replica. Row 1: replica 0.
Mixing halfAndCopy() {
  Mixing mixing(2, 3);
  mixing.setRow(0, std::array{MixingShare{0, 0.5}, MixingShare{1, 0.5}});
  mixing.setRow(1, std::array{MixingShare{0, 1}});
  return mixing;
}

constexpr std::array<std::size_t, 2> kBoth{0, 1};

}  // namespace

TEST_CASE("rows are formed from the old values, in the slice alone, a shared one for all its workers") {
  Two two(MergeRule::Average, {0, 1, 2, 3}, {10, 11, 12, 13});
  two.begin({1, 3});
  two.readBoth();
  two.mixer.mix(halfAndCopy(), kBoth);
  CHECK(two.of(0) == Values{0, 6, 7, 3});
  CHECK(two.of(1) == Values{10, 1, 2, 13});
  Mixing shared(2, 2);
  shared.setRow(0, std::array{MixingShare{0, 0.5}, MixingShare{1, 0.5}});
  shared.shareRow(1, 0);
  two.begin({0, 1});
  two.readBoth();
  two.mixer.mix(shared, kBoth);
  CHECK(two.of(0) == Values{5, 6, 7, 3});
  CHECK(two.of(1) == Values{5, 1, 2, 13});
}

TEST_CASE("a replica from elsewhere is read from the mixer's inbox") {
  Two two(MergeRule::Average, {0, 0}, {8, 8});
  two.begin({0, 2});
  two.mixer.read(0);
  const Tensor inbox = two.mixer.inbox(1, 0);
  REQUIRE(inbox.elements() == 2);
  inbox.data<float>()[0] = 20;
  inbox.data<float>()[1] = 40;
  two.mixer.mix(halfAndCopy(), std::array<std::size_t, 1>{0});
  CHECK(two.of(0) == Values{10, 20});
  CHECK(two.of(1) == Values{8, 8});
}

TEST_CASE("a row of means and variances is a mixture of distributions") {
  // Mean 0, variance 1, and mean 4, variance 3, drawn with probabilities 1/4 and 3/4: mean 3, variance
  // (1 + 0) / 4 + 3 (3 + 16) / 4 - 9 = 5.5.
  Two two(MergeRule::Moments, {0, 1}, {4, 3});
  Mixing mixing(2, 2);
  mixing.setRow(0, std::array{MixingShare{0, 0.25}, MixingShare{1, 0.75}});
  two.begin({0, 1});
  two.readBoth();
  two.mixer.mix(mixing, kBoth);
  CHECK(two.of(0) == Values{3, 5.5f});
  CHECK(two.of(1) == Values{4, 3});  // it has no row
}

TEST_CASE("a merged copy of means and variances keeps a share of itself") {
  // 1/2 of (8, 2) and 1/4 of (0, 1) and (4, 3) each: mean 5, variance
  // (2 + 64) / 2 + (1 + 0) / 4 + (3 + 16) / 4 - 25 = 13.
  Two two(MergeRule::Moments, {0, 1}, {4, 3});
  const Tensor copy = two.block().mergedCopy();
  copy.data<float>()[0] = 8;
  copy.data<float>()[1] = 2;
  two.begin({0, 1});
  two.readBoth();
  two.mixer.merge(std::array{2.0, 2.0}, 0.5, copy);
  CHECK(Values(copy.data<float>(), copy.data<float>() + 2) == Values{5, 13});
}

TEST_CASE("the scratch memory has two slots of each replica, with moments three") {
  const Two plain(MergeRule::Average, {0, 0}, {0, 0}), moments(MergeRule::Moments, {0, 0}, {0, 0});
  CHECK(RowMixer::elementsAtATime(plain.block(), 1600) == 100);   // 2 slots * 2 replicas * 4 bytes
  CHECK(RowMixer::elementsAtATime(moments.block(), 1600) == 33);  // 3 * 2 * 2 parts * 4 bytes
  CHECK(RowMixer::bytesFor(2, 100) == 9600);                      // 3 * 2 * 2 * 8 bytes, for any type
}

TEST_CASE("a row that is not finite names the element of the block") {
  Values bad(100);
  bad[70] = std::numeric_limits<float>::max();
  Two two(MergeRule::Average, Values(100), bad);
  Mixing mixing(2, 2);
  mixing.setRow(0, std::array{MixingShare{0, -1}, MixingShare{1, 2}});
  two.begin({64, 100});
  two.readBoth();
  try {
    two.mixer.mix(mixing, kBoth);
    FAIL("it must throw");
  } catch (const NonFiniteResult& error) {
    CHECK(error.element() == 70);
  }
}
