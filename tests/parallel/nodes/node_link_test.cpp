#include "muster/parallel/nodes/node_link.h"

#include "tests/parallel/nodes/on_links.h"
#include "tests/support/failure.h"
#include "tests/support/thrown.h"

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

}  // namespace

TEST_CASE("of silences that differ, the longest counts on every node") {
  VirtualNetwork network(2);
  std::array<std::string, 2> problems;
  {
    std::vector<std::jthread> threads;
    for (int n = 0; n < 2; ++n)
      threads.emplace_back([&, n] {
        // Node 1 sends a heartbeat every 500 ms, and node 0 alone would give it up after 200 ms.
        NodeLink link([&network, n] { return network.transport(n); }, n == 0 ? 200ms : 4s);
        problems.at(static_cast<std::size_t>(n)) = thrown<NodeFailure>([&] {
          for (int i = 0; i < 2; ++i) {
            gatherOnce(link);
            std::this_thread::sleep_for(900ms);
          }
          throw NodeFailure("well");
        });
      });
  }
  for (const auto& problem : problems) CHECK(problem == "well");
}

TEST_CASE("after a failure the first node that is left is known on all that are left") {
  for (const int lost : {0, 1}) {
    CAPTURE(lost);
    VirtualNetwork network(3);
    std::array<int, 3> first{-1, -1, -1};
    onLinks(network, 300ms, [&](NodeLink& link) {
      gatherOnce(link);
      CHECK(link.firstLeft() == 0);
      network.silence(lost);
      if (link.node() == lost) return std::this_thread::sleep_for(2s);  // it does not know
      CHECK_THROWS_AS(gatherOnce(link), NodeFailure);
      first.at(static_cast<std::size_t>(link.node())) = link.firstLeft();
    });
    for (const int n : {0, 1, 2})
      if (n != lost) CHECK(first.at(static_cast<std::size_t>(n)) == (lost == 0 ? 1 : 0));
  }
}

TEST_CASE("a node that fails by itself is not lost") {
  VirtualNetwork network(2);
  int first = -1;
  onLinks(network, 30s, [&](NodeLink& link) {
    gatherOnce(link);
    if (link.node() == 0) return link.fail();
    CHECK_THROWS_AS(gatherOnce(link), NodeFailure);
    first = link.firstLeft();
  });
  CHECK(first == 0);
}

TEST_CASE("all nodes get the messages of all, and know each other's names") {
  for (const int nodes : {1, 2, 5}) {
    VirtualNetwork network(nodes);
    const auto problems = onLinks(network, 30s, [&](NodeLink& link) {
      for (int i = 0; i < 20; ++i) gatherOnce(link);
      CHECK(link.nodes() == nodes);
      CHECK(link.nameOf(nodes - 1) == fmt::format("node {} (virtual{})", nodes - 1, nodes - 1));
    });
    for (const auto& problem : problems) CHECK(problem.empty());
  }
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

TEST_CASE("a silent node ends the waiting of all others, which name it") {
  VirtualNetwork network(3);
  const auto problems = onLinks(network, 200ms, [&](NodeLink& link) {
    gatherOnce(link);
    if (link.node() == 2) network.silence(2);
    for (;;) gatherOnce(link);
  });
  for (const int n : {0, 1}) {
    CAPTURE(problems[static_cast<std::size_t>(n)]);
    CHECK(contains(problems[static_cast<std::size_t>(n)], "node 2 (virtual2)"));
  }
  CHECK_FALSE(problems[2].empty());
}

TEST_CASE("a broken link between two nodes ends the waiting of all three") {
  VirtualNetwork network(3);
  const auto problems = onLinks(network, 200ms, [&](NodeLink& link) {
    gatherOnce(link);
    if (link.node() == 2) network.cut(1, 2);
    for (;;) gatherOnce(link);
  });
  for (const auto& problem : problems) CHECK(contains(problem, "node "));
}

TEST_CASE("a node that fails tells the others at once, and all later calls fail") {
  VirtualNetwork network(3);
  const auto problems = onLinks(network, 30s, [&](NodeLink& link) {
    gatherOnce(link);
    if (link.node() == 1) {
      link.fail();
      CHECK(link.failed());
    }
    CHECK_FALSE(thrown<NodeFailure>([&] {
                  for (;;) gatherOnce(link);
                }).empty());
    link.requireWhole();
  });
  for (const int n : {0, 2})
    CHECK(
        problems[static_cast<std::size_t>(n)].starts_with("node 1 (virtual1) "));  // says node 1 or the third
}

TEST_CASE("a node whose program has ended is reported by those that continue") {
  VirtualNetwork network(2);
  const auto problems = onLinks(network, 1s, [&](NodeLink& link) {
    gatherOnce(link);
    if (link.node() == 0) gatherOnce(link);
  });
  CHECK(problems[0] == "node 1 (virtual1) has ended its program");
  CHECK(problems[1].empty());
}

TEST_CASE("a message of an unexpected size is refused") {
  VirtualNetwork network(2);
  const auto problems = onLinks(network, 30s, [&](NodeLink& link) {
    std::vector<std::byte> own(link.node() == 0 ? 3 : 4), all(2 * own.size());
    link.gather(own, all);
  });
  CHECK(contains(problems[0] + problems[1], "bytes where"));
  CHECK_FALSE(problems[0].empty());
  CHECK_FALSE(problems[1].empty());
}

TEST_CASE("a node that never connects is named") {
  VirtualNetwork network(2);
  CHECK(contains(thrown<NodeFailure>([&] { NodeLink link([&] { return network.transport(0); }, 150ms); }),
                 "node 1 has not answered for 0.15 s"));
  CHECK(contains(thrown<InvalidArgument>([&] { NodeLink link([&] { return network.transport(0); }, 10ms); }),
                 "at least 100 ms"));
}
