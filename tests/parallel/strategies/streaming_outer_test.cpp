#include "muster/parallel/strategies/streaming_outer.h"

#include "muster/parallel/exchange/host_exchange.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("in a period each fragment is launched once, in turn, and each epoch begins with the first") {
  const auto table = std::make_shared<SegmentTable>();
  for (const char* const name : {"a", "b", "c", "d"}) table->add({.name = name, .shape = {5}});
  auto block = StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, table);
  for (const int fragments : {1, 2, 4})
    for (const std::int64_t delay : {0, 2}) {
      INFO("fragments ", fragments, ", delay ", delay);
      const auto rule =
          StreamingOuter{.frequency = 3 * fragments, .fragments = fragments, .delay = delay}.make();
      HostExchange exchange({{&block}}, UpdaterState::Average);
      exchange.makeStrategyBlocks(rule->blocks(1));
      rule->begin(exchange);
      TrainingProgress now;
      for (const std::int64_t epoch : {0, 1})
        for (int turn = 0; turn <= 2 * fragments; ++turn) {
          now.epoch = epoch;
          const FragmentSet next = FragmentSet::of(turn % fragments);
          const RoundPlan first = rule->plan(now);
          CHECK(first.launch.bits == next.bits);
          CHECK(first.land.bits == (delay == 0 ? next.bits : 0));
          CHECK(first.iterations == 3 - delay);
          ++now.rounds;
          if (delay == 0) continue;
          now.inFlight = next;
          const RoundPlan second = rule->plan(now);
          CHECK(second.launch.empty());
          CHECK(second.land.bits == next.bits);
          CHECK(second.iterations == delay);
          ++now.rounds;
          now.inFlight = {};
        }
    }
}

TEST_CASE("a model of fewer tensors than fragments is refused") {
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2});
  CHECK_REFUSED(wrapperOf(model, 2, StreamingOuter{}).fit(data),
                "streaming outer averaging: the model has 1 tensor, which 2 fragments cannot be made of");
}
