#include "muster/parallel/nodes/node_connection.h"

#include "muster/parallel/nodes/node_link.h"
#include "tests/support/on_threads.h"
#include "tests/support/virtual_network.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

/// Runs `program` on each of two nodes, once they have greeted each other.
void onConnections(const std::function<void(NodeConnection&, NodeCall&)>& program) {
  VirtualNetwork network(2);
  CHECK(onThreads(2, [&](int n) {
          NodeCall call(2);
          NodeConnection connection(network.transport(n), 30s,
                                    [&](NodeCall& done) { CHECK(&done == &call); });
          connection.greet();
          program(connection, call);
        }) == std::vector<std::string>(2));
}

}  // namespace

TEST_CASE("nodes greet each other, send messages of calls, and end together") {
  onConnections([](NodeConnection& connection, NodeCall& call) {
    const int node = connection.health().node(), other = 1 - node;
    CHECK(connection.health().nodes() == 2);
    CHECK(connection.health().greeted(other));
    std::array own{std::byte(node + 1)}, theirs{std::byte(0)};
    connection.begin(call, {NodeMessage::Way::Receive, other, 3, theirs});
    connection.begin(call, {NodeMessage::Way::Send, other, 3, own});
    CHECK(connection.callsOpen());
    while (connection.callsOpen()) connection.poll();
    CHECK(theirs.front() == std::byte(other + 1));
    CHECK(connection.bytesSent() == static_cast<std::int64_t>(sizeof(NodeNotice)) + 1);
    connection.announceEnd();
    CHECK(connection.health().ended(other));
    CHECK_FALSE(connection.failed());
    CHECK(connection.problem().empty());
  });
}

TEST_CASE("the first cause of a failure is kept, and told to the others") {
  onConnections([](NodeConnection& connection, NodeCall&) {
    if (connection.health().node() == 1) {
      connection.fail();
      CHECK(connection.failed());
      CHECK(connection.problem().empty());
      connection.end();
      CHECK(connection.problem() == "another thread of this node has failed");
      return;
    }
    while (!connection.failed()) connection.poll();
    const std::string cause = connection.problem();
    CHECK(cause.ends_with("has failed; its own message says why"));
    try {
      throw NodeFailure("later");
    } catch (const NodeFailure&) {
      connection.failByException();
    }
    CHECK(connection.problem() == cause);
    CHECK(connection.health().firstLeft() == 0);
    connection.end();
  });
}

TEST_CASE("messages that are open have different tickets, which are used again") {
  OpenMessages open(/*most=*/1);
  NodeCall* const call = reinterpret_cast<NodeCall*>(&open);  // only its address counts
  const NodeMessage from1{.way = NodeMessage::Way::Receive, .node = 1}, to2{.node = 2};
  const int own = open.add(nullptr, from1);
  CHECK_FALSE(open.waitsFor(1));  // no call waits for it
  const int first = open.add(call, from1), second = open.add(call, to2);
  CHECK(first != own);
  CHECK(second != first);
  CHECK(open.ofCalls() == 2);
  CHECK(open.waitsFor(1));
  CHECK_FALSE(open.waitsFor(2));  // what is sent is not waited for
  const auto done = open.take(first);
  CHECK(done.call == call);
  CHECK(done.message.node == 1);
  CHECK(open.ofCalls() == 1);
  CHECK_FALSE(open.waitsFor(1));
  CHECK(open.add(call, from1) == first);
  for (int i = 0; i < 100; ++i) CHECK(open.add(call, to2) > second);
}
