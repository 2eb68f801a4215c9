#include "muster/parallel/run/detail/node_options.h"

#include <latch>

#include "muster/parallel/nodes/node_link.h"
#include "tests/parallel/elastic_alone.h"
#include "tests/parallel/on_nodes.h"
#include "tests/support/environment.h"
#include "tests/support/thrown.h"

namespace muster::detail {
namespace {

using test::Environment;

TEST_CASE("variables of nodes are numbers in their ranges") {
  for (const std::string name : {"MUSTER_NODE", "MUSTER_NODES", "MUSTER_MIN_NODES", "MUSTER_SILENCE"}) {
    const Environment environment(name, "2x");
    CHECK_REFUSED(NodeOptions(), name + " must be a number, got \"2x\"");
  }
  for (const std::string name : {"MUSTER_NODES", "MUSTER_MIN_NODES"})
    for (const std::string value : {"0", "-2", "1025"}) {
      const Environment environment(name, value);
      CHECK_REFUSED(NodeOptions(), fmt::format("{} must be between 1 and 1024, got {}", name, value));
    }
  for (const std::string value : {"0", "2000000"}) {
    const Environment environment("OMPI_COMM_WORLD_SIZE", value);
    CHECK_REFUSED(NodeOptions().count(),
                  fmt::format("the number of launched processes must be between 1 and 1024, got {}", value));
  }
  const Environment nodes("MUSTER_NODES", "1024"), least("MUSTER_MIN_NODES", "3"), store("MUSTER_STORE", "s");
  CHECK(NodeOptions().nodes == 1024);
  CHECK(NodeOptions().count() == 3);
}

TEST_CASE("nodes are found by variables, and without any there is one; a silence has a length") {
  CHECK(NodeOptions().silence == 30);
  CHECK(NodeOptions().count() == 1);
  CHECK(NodeOptions().connect().nodes() == 1);
  const Environment store("MUSTER_STORE", "s"), node("MUSTER_NODE", "2"), nodes("MUSTER_NODES", "3"),
      interface("MUSTER_INTERFACE", "lo");
  for (const std::string value : {"0", "nan", "2000000"}) {
    const Environment silence("MUSTER_SILENCE", value);
    CHECK_REFUSED(NodeOptions().connect(), "silence must be above 0 and at most 1000000 s, got " + value);
  }
  const NodeOptions options;
  CHECK(options.store == "s");
  CHECK(options.node == 2);
  CHECK(options.count() == 3);
  CHECK(options.interface == "lo");
}

TEST_CASE("what one node says counts on all, unless they are elastic or one has failed") {
  for (const int speaker : {-1, 0, 2})
    for (const int any :
         test::fromAll(3, [&](const Nodes& here) { return int{onAnyNode(here, here.node() == speaker)}; }))
      CHECK(any == (speaker >= 0));
  for (const bool own : {false, true}) {
    CHECK(onAnyNode({}, own) == own);
    CHECK(onAnyNode(test::ElasticAlone().nodes(), own) == own);
  }
  test::onAll(2, [](const Nodes& here) {
    onAnyNode(here, false);  // both are connected
    here.link()->fail();
    CHECK(onAnyNode(here, here.node() == 1) == (here.node() == 1));
  });
}

TEST_CASE("the first node that is left saves") {
  CHECK(savingNode({}) == 0);
  CHECK(savingNode(test::ElasticAlone().nodes()) == 0);
  VirtualNetwork network(3);
  std::latch connected(3), known(2);
  test::onNodes(network, std::chrono::seconds(2), [&](const Nodes& here) {
    onAnyNode(here, false);
    CHECK(savingNode(here) == 0);
    connected.arrive_and_wait();
    network.silence(0);
    if (here.node() == 0) return known.wait();  // it does not know
    onAnyNode(here, false);
    CHECK(savingNode(here) == 1);
    known.count_down();
  });
}

}  // namespace
}  // namespace muster::detail
