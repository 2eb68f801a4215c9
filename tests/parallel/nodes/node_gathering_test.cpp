#include "muster/parallel/nodes/node_gathering.h"

#include "tests/parallel/nodes/on_exchanges.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("a node gathers the replicas of all workers while the others answer") {
  // Two nodes with two workers each; worker w's parameters are w.
  VirtualNetwork network(2);
  const auto make = [](const std::vector<int>& workers) {
    return Replicas(workers, {{"parameters", BlockKind::Parameters, MergeRule::Average, 3}},
                    [](int w, std::size_t, std::int64_t) { return w; });
  };
  onExchanges(network, make, {.local = 2}, [](const ExchangeHere& here) {
    NodeGroup& group = *here.exchange.nodeGroup();
    group.answer();  // nothing may be gathered yet, so no node sends anything
    group.allowGathering();
    if (here.node == 0) {
      const Tensor all = Tensor::zeros({4, 3});
      group.gather(here.exchange.block(BlockKind::Parameters), all);
      for (int w = 0; w < 4; ++w) CHECK(all.data<float>()[3 * w] == static_cast<float>(w));
    }
    group.answer();
    CHECK(group.awaitLaunched());
  });
}
