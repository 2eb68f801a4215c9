#include "muster/parallel/nodes/node_health.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

using namespace muster;
using namespace std::chrono_literals;

namespace {

const NodeHealth::Time kBegin = NodeHealth::Time() + 1000h;

/// Node 0 of three, with a silence of 8 s, that has said and heard hello.
struct Three {
  Three() {
    for (const int n : {1, 2})
      health.take(n, NodeHealth(n, 3, "host" + std::to_string(n), 8s, kBegin).notice(NodeNotice::Hello));
  }
  /// What node 1 tells, as text.
  std::string told(NodeNotice::Kind kind, int culprit) {
    const auto failure = health.take(1, {.kind = kind, .culprit = culprit});
    if (!failure) return "";
    return fmt::format("{}: {}{}", failure->culprit, failure->problem, failure->lost ? " (lost)" : "");
  }
  /// The failures that are found `after` the beginning.
  std::string found(NodeHealth::Time::duration after, int waitsFor = -1) {
    std::string all;
    health.checkSilence(
        kBegin + after, [&](int n) { return n == waitsFor; },
        [&](const NodeHealth::Failure& failure) {
          all += failure.problem + (failure.lost ? " (lost) " : " ");
        });
    return all;
  }
  NodeHealth health{0, 3, "host0", 8s, kBegin};
};

}  // namespace

TEST_CASE("hellos tell the others' hosts, and the longest silence of all counts") {
  NodeHealth health(0, 2, "here", 2s, kBegin);
  CHECK(health.nameOf(0) == "node 0 (here)");
  CHECK(health.nameOf(1) == "node 1");
  CHECK_FALSE(health.greeted(1));
  NodeNotice hello = NodeHealth(1, 2, std::string(200, 'x'), 5s, kBegin).notice(NodeNotice::Hello);
  CHECK(hello.silence == 5000);
  CHECK_FALSE(health.take(1, hello));
  CHECK(health.greeted(1));
  CHECK(health.nameOf(1) == "node 1 (" + std::string(103, 'x') + ")");  // what has room
  CHECK(health.silence() == 5s);
  hello.silence = 1000;
  health.take(1, hello);
  CHECK(health.silence() == 5s);
  hello.magic = 7;
  CHECK(health.take(1, hello)->problem.ends_with(") runs another program, or another version of muster"));
}

TEST_CASE("a failure is that of the node that tells of it, or of the one that it has lost") {
  const auto told = [](NodeNotice::Kind kind, int culprit) { return Three().told(kind, culprit); };
  CHECK(told(NodeNotice::Alive, 0) == "");
  for (const int culprit : {1, 7})
    CHECK(told(NodeNotice::Failed, culprit) == "1: node 1 (host1) has failed; its own message says why");
  CHECK(told(NodeNotice::Failed, 2) == "2: node 2 (host2) is lost, as node 1 (host1) reports (lost)");
  CHECK(told(NodeNotice::Failed, 0) == "0: node 1 (host1) has given this node up");
  CHECK(told(NodeNotice::Heard, 2) == "2: node 2 (host2) has failed; its own message says why");
  CHECK(told(NodeNotice::Heard, -1) == "1: node 1 (host1) has failed");
  Three three;
  three.told(NodeNotice::Heard, 2);
  CHECK(three.health.failed(2));  // it is not lost
  CHECK_FALSE(three.health.failed(1));
}

TEST_CASE("a node that says nothing for too long is lost, and any message counts") {
  Three three;
  CHECK(three.found(8s) == "");
  three.health.hear(2, kBegin + 1s);
  CHECK(three.found(8001ms) ==
        "nothing was heard of node 1 (host1) for 8 s: it hangs, was killed, or its network is cut (lost) ");
  CHECK(three.found(10s).find("node 2 (host2)") != std::string::npos);
}

TEST_CASE("a node that has ended may be silent, unless this one waits for it") {
  Three three;
  three.health.hear(2, kBegin + 1h);
  three.told(NodeNotice::Goodbye, 0);
  CHECK(three.health.ended(1));
  CHECK(three.found(1h) == "");
  CHECK(three.found(1s, /*waitsFor=*/1) == "");  // messages before the goodbye may still arrive
  CHECK(three.found(1001ms, 1) == "node 1 (host1) has ended its program ");
}

TEST_CASE("heartbeats are due eight times in the silence; a stopped process does not blame the others") {
  Three three;
  CHECK_FALSE(three.health.beats(kBegin + 1s));
  CHECK(three.health.beats(kBegin + 1001ms));
  CHECK_FALSE(three.health.beats(kBegin + 2s));
  CHECK(three.health.beats(kBegin + 3s));
  CHECK(three.health.beats(kBegin + 20s));  // it has not looked for 17 s
  CHECK(three.found(28s) == "");            // all count as heard of at 20 s
  CHECK(three.found(28001ms) != "");
}

TEST_CASE("the first node that is not lost") {
  Three three;
  CHECK(three.health.firstLeft() == 0);
  for (const int lost : {1, 0, 2}) {
    three.health.lose(lost);
    CAPTURE(lost);
    CHECK(three.health.firstLeft() == (lost == 0 ? 2 : 0));  // 0, too, if all are lost
  }
}
