#include "muster/parallel/nodes/node_link.h"

#include "tests/parallel/nodes/on_links.h"
#include "tests/support/texts.h"

using namespace muster;
using namespace std::chrono_literals;
using namespace muster::test;

namespace {

void gatherOnce(NodeLink& link) {
  const std::array own{static_cast<std::byte>(link.node())};
  std::vector<std::byte> all(static_cast<std::size_t>(link.nodes()));
  link.gather(own, all);
  for (int n = 0; n < link.nodes(); ++n) CHECK(all[static_cast<std::size_t>(n)] == static_cast<std::byte>(n));
}

/// Runs a program on each node after it has gathered once. @return [node] what it throws
std::vector<std::string> problemsOf(int nodes, std::chrono::milliseconds silence,
                                    const std::function<void(VirtualNetwork&, NodeLink&)>& program) {
  VirtualNetwork network(nodes);
  return onLinks(network, silence, [&](NodeLink& link) {
    gatherOnce(link);
    program(network, link);
  });
}

void gatherForEver(NodeLink& link) {
  for (;;) gatherOnce(link);
}

}  // namespace

TEST_CASE("of silences that differ, the longest counts on every node") {
  VirtualNetwork network(2);
  const auto problems = onThreads(2, [&](int n) {
    // Node 1 sends a heartbeat every 500 ms, and node 0 alone would give it up after 200 ms.
    NodeLink link([&] { return network.transport(n); }, n == 0 ? 200ms : 4s);
    for (int i = 0; i < 2; ++i) {
      gatherOnce(link);
      std::this_thread::sleep_for(900ms);
    }
  });
  CHECK(problems == std::vector<std::string>(2));
}

TEST_CASE("after a failure the first node that is left is known on all that are left") {
  for (const int lost : {0, 1}) {
    CAPTURE(lost);
    problemsOf(3, 300ms, [&](VirtualNetwork& network, NodeLink& link) {
      CHECK(link.firstLeft() == 0);
      network.silence(lost);
      if (link.node() == lost) return std::this_thread::sleep_for(2s);  // it does not know
      CHECK_THROWS_AS(gatherOnce(link), NodeFailure);
      CHECK(link.firstLeft() == (lost == 0 ? 1 : 0));
    });
  }
  problemsOf(2, 30s, [](VirtualNetwork&, NodeLink& link) {
    if (link.node() == 0) return link.fail();
    CHECK_THROWS_AS(gatherOnce(link), NodeFailure);
    CHECK(link.firstLeft() == 0);  // a node that fails by itself is not lost
  });
}

TEST_CASE("all nodes get the messages of all, and know each other's names") {
  for (const int nodes : {1, 2, 5})
    CHECK(problemsOf(nodes, 30s, [&](VirtualNetwork&, NodeLink& link) {
            for (int i = 0; i < 20; ++i) gatherOnce(link);
            CHECK(link.nodes() == nodes);
            CHECK(link.nameOf(nodes - 1) == fmt::format("node {} (virtual{})", nodes - 1, nodes - 1));
          }) == std::vector<std::string>(static_cast<std::size_t>(nodes)));
}

TEST_CASE("messages of a channel keep their order, whatever other threads send") {
  VirtualNetwork network(2);
  const auto problems = onLinks(network, 30s, [&](NodeLink& link) {
    std::vector<std::jthread> threads;
    for (int channel = 2; channel < 6; ++channel)
      threads.emplace_back([&link, channel] {
        NodeCall call(2);
        for (int i = 0; i < 200; ++i) {
          std::array<int, 3> out{channel, i, link.node()}, in{};
          call.clear();
          call.send(1 - link.node(), channel, std::as_bytes(std::span(out)));
          call.receive(1 - link.node(), channel, std::as_writable_bytes(std::span(in)));
          link.begin(call);
          link.wait(call);
          CHECK(in == std::array{channel, i, 1 - link.node()});
        }
      });
  });
  for (const auto& problem : problems) CHECK(problem.empty());
}

TEST_CASE("a silent node, or a broken link between two, ends the waiting of all, which name a node") {
  const auto silent = problemsOf(3, 200ms, [&](VirtualNetwork& network, NodeLink& link) {
    if (link.node() == 2) network.silence(2);
    gatherForEver(link);
  });
  for (const std::size_t n : {0, 1}) CHECK_CONTAINS(silent[n], "node 2 (virtual2)");
  CHECK(silent[2] != "");
  const auto broken = problemsOf(3, 200ms, [&](VirtualNetwork& network, NodeLink& link) {
    if (link.node() == 2) network.cut(1, 2);
    gatherForEver(link);
  });
  for (const auto& problem : broken) CHECK_CONTAINS(problem, "node ");
}

TEST_CASE("a node that fails tells the others at once, and all later calls fail") {
  const auto problems = problemsOf(3, 30s, [&](VirtualNetwork&, NodeLink& link) {
    if (link.node() == 1) {
      link.fail();
      CHECK(link.failed());
    }
    CHECK_THROWS_AS(gatherForEver(link), NodeFailure);
    link.requireWhole();
  });
  for (const std::size_t n : {0, 2})
    CHECK(problems[n].starts_with("node 1 (virtual1) "));  // says node 1 or the third
}

TEST_CASE("a node whose program has ended is reported by those that continue") {
  const auto problems = problemsOf(2, 1s, [&](VirtualNetwork&, NodeLink& link) {
    if (link.node() == 0) gatherOnce(link);
  });
  CHECK(problems == std::vector<std::string>{"node 1 (virtual1) has ended its program", ""});
}

TEST_CASE("a message of an unexpected size is refused") {
  const auto problems = problemsOf(2, 30s, [&](VirtualNetwork&, NodeLink& link) {
    std::vector<std::byte> own(link.node() == 0 ? 3 : 4), all(2 * own.size());
    link.gather(own, all);
  });
  CHECK_CONTAINS(problems[0] + problems[1], "bytes where");
  CHECK((problems[0] != "" && problems[1] != ""));
}

TEST_CASE("a node that never connects is named") {
  VirtualNetwork network(2);
  CHECK_CONTAINS(thrown<NodeFailure>([&] { NodeLink link([&] { return network.transport(0); }, 150ms); }),
                 "node 1 has not answered for 0.15 s");
  CHECK_CONTAINS(thrown<InvalidArgument>([&] { NodeLink link([&] { return network.transport(0); }, 10ms); }),
                 "at least 100 ms");
}
