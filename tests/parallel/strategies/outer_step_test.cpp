#include "muster/parallel/strategies/outer_step.h"

#include "muster/parallel/exchange/host_exchange.h"
#include "muster/parallel/exchange/merge_ops.h"
#include "tests/parallel/replicas.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Outer steps of two replicas with one parameter; outer parameters begin at 1.
struct Outer {
  explicit Outer(const OuterStep& s) : step(s) {
    const auto blocks = step.blocks(/*meanInFlight=*/false);
    CHECK(blocks.size() == (step.momentum > 0 ? 2U : 1U));
    exchange.makeStrategyBlocks(blocks);
    sending.begin(exchange, std::span(&whole, 1));
    outer() = 1;
  }
  float& outer() { return exchange.blocks()[0].mergedCopy().data<float>()[0]; }
  /// The replicas have trained to these values. @return the replicas' base after the step.
  float take(float first, float second, bool atOnce) {
    replicas.values(0)[0] = first;
    replicas.values(1)[0] = second;
    const std::array weights{1.0, 1.0};
    const AllOnFirst all(exchange);  // participant 0 does every share
    MergeOps ops(exchange, 0, context);
    if (atOnce) {
      step.takeAtOnce(weights, 1, ops);
    } else {
      step.takeMean(sending, weights, 1, whole, ops);
      step.apply(whole, ops);
      step.writeBack(0, whole, ops);
    }
    CHECK(replicas.values(0)[0] == replicas.values(1)[0]);
    return replicas.values(0)[0];
  }

  const OuterStep step;
  Replicas replicas{{0, 1},
                    {{"parameters", BlockKind::Parameters, MergeRule::Average, 1}},
                    [](int, std::size_t, std::int64_t) { return 1.0; }};
  HostExchange exchange{replicas.states, UpdaterState::Average};
  CodedReplicas sending{WholeReplicas{}};
  const Fragment whole = Fragment::whole(1);
  Context context;
};

}  // namespace

TEST_CASE("momentum adds the moves before; with Nesterov momentum workers train from a point ahead") {
  struct Row {
    OuterStep step;
    float trained, first, second,
        outer;  // workers to 2 and 4, then both to `trained`; the bases; W at the end
  };
  // D = 0.5 (3 - 1) = 1, W = 2. Then D = 0.5 * 1 + 0.5 (4 - 2) = 1.5, W = 3.5. With Nesterov the first base
  // is W + D / 2 = 2.5, and D = 0.5 * 1 + 0.5 (4.5 - 2.5) = 1.5, W = 3.5, base 4.25.
  for (const Row& row : {Row{{}, 5, 3, 5, 5}, Row{{.rate = 0.5, .momentum = 0.5}, 4, 2, 3.5f, 3.5f},
                         Row{{.rate = 0.5, .momentum = 0.5, .nesterov = true}, 4.5f, 2.5f, 4.25f, 3.5f}})
    for (const bool atOnce : {false, true}) {
      CAPTURE(row.step.describe());
      Outer outer(row.step);
      CHECK(outer.take(2, 4, atOnce) == row.first);
      CHECK(outer.take(row.trained, row.trained, atOnce) == row.second);
      CHECK(outer.outer() == row.outer);
    }
}

TEST_CASE("a step is described, and refuses options out of range") {
  CHECK(OuterStep{.rate = 0.7, .momentum = 0.9, .nesterov = true}.describe() ==
        "rate 0.7, Nesterov momentum 0.9");
  CHECK(OuterStep{}.describe() == "rate 1, momentum 0");
  CHECK(OuterStep{.momentum = 0.5}.decay(0.5) == 0.25);
  CHECK(OuterStep{.rate = 0.25, .momentum = 0.5, .nesterov = true}.decay(1) == 0.375);
  CHECK(OuterStep{.momentum = 0.5}.ahead() == 0);
  CHECK_REFUSED(OuterStep{.rate = 0}.validate("a rule"), "a rule: rate must be above 0, got 0");
  CHECK(thrown<InvalidArgument>([] {
          OuterStep{.momentum = 1}.validate("a rule");
        }).starts_with("a rule: momentum must be "));
}
