// The warning about iterators that read the batches of other nodes. One test, because the warning comes once
// in a program.

#include "muster/core/data/prefetch.h"
#include "tests/parallel/on_nodes.h"
#include "tests/support/log_lines.h"

using namespace muster;
using namespace muster::test;

namespace {

struct Seeks final : ToyIterator {
  using ToyIterator::ToyIterator;
  std::int64_t skip(std::int64_t batches) override {
    Batch batch;
    std::int64_t examples = 0;
    for (; batches > 0 && next(batch); --batches) examples += batch.examples();
    return examples;
  }
};

template <typename Data>
void trainOverTwoNodes(int prefetch) {
  VirtualNetwork network(2);
  const auto problems = onNodes(network, std::chrono::minutes(1), [&](const Nodes& nodes) {
    ToyModel model({.size = 4, .training = {.updater = Sgd{.learningRate = 0.5}}});
    Data own(randomBatches(3, 8, 1, 4), 4);
    PrefetchingIterator data(own, prefetch);
    auto wrapper = builderOf(model, 1, Averaging{}).nodes(nodes).build();
    wrapper.fit(data, 2);
    wrapper.fit(data);
  });
  CHECK(problems == std::vector<std::string>(2));
}

}  // namespace

TEST_CASE("node 0 warns once of an iterator that reads the batches of other nodes") {
  const LogLines log;
  const auto warnings = [&] {
    auto lines = log.all();
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("warning: "); });
    return lines;
  };
  trainOverTwoNodes<Seeks>(0);
  trainOverTwoNodes<Seeks>(2);
  CHECK(warnings() == std::vector<std::string>{});
  trainOverTwoNodes<ToyIterator>(2);
  trainOverTwoNodes<ToyIterator>(0);
  CHECK(warnings() ==
        std::vector<std::string>{
            "warning: nodes: the data iterator has no skip() of its own, so each node reads all batches; "
            "override skip() to read only its share"});
}
