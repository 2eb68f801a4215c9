#include "muster/parallel/nodes/node_messages.h"

#include "tests/parallel/nodes/on_links.h"

using namespace muster;
using namespace muster::test;

namespace {

using Problems = std::vector<std::string>;

/// Each participant's message is as many bytes as its number, of that value.
struct NumberedMessages final : Messages {
  std::span<std::byte> head(std::size_t participant) override {
    if (participant == own) lengths[participant] = participant;
    return std::as_writable_bytes(std::span(lengths).subspan(participant, 1));
  }
  std::span<std::byte> body(std::size_t participant) override {
    require(lengths[participant] < 4, "a length of {}", lengths[participant]);
    bodies[participant].resize(lengths[participant], std::byte(participant == own ? participant : 99));
    return bodies[participant];
  }
  void arrived(std::size_t participant) override {
    require(participant != 3, "three");
    arrivals += participant;
  }

  explicit NumberedMessages(std::size_t me) : own(me) {}
  const std::size_t own;
  std::array<std::size_t, 6> lengths{};
  std::array<std::vector<std::byte>, 6> bodies;
  std::size_t arrivals = 0;
};

}  // namespace

TEST_CASE("bytes of any length go to the nodes that take them") {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, (std::size_t{1} << 16) + 1, std::size_t{200001}}) {
    CAPTURE(count);
    const auto problems = onLinks(3, [count](NodeLink& link) {
      NodeMessages messages(link, 6);
      const std::vector<std::byte> own(count, std::byte(1 + link.node()));
      std::vector<std::byte> all(3 * count, std::byte(0));
      // Nodes 0 and 1 send; nodes 1 and 2 take.
      messages.run(
          own, all, [](int n) { return n < 2; }, [](int n) { return n > 0; });
      for (int from = 0; from < 3 && count > 0; ++from) {
        const bool got = from < 2 && link.node() > 0 && from != link.node();
        const std::byte expected = got ? std::byte(1 + from) : std::byte(0);
        CHECK(all[static_cast<std::size_t>(from) * count] == expected);
        CHECK(all[(static_cast<std::size_t>(from) + 1) * count - 1] == expected);
      }
    });
    CHECK(problems == std::vector<std::string>(3));
  }
}

TEST_CASE("lengths may differ from sender to sender") {
  const auto problems = onLinks(2, [](NodeLink& link) {
    NodeMessages messages(link, 6);
    const std::size_t lengths[] = {70000, 3};
    const auto me = static_cast<std::size_t>(link.node());
    const std::vector<std::byte> own(lengths[me], std::byte(7));
    std::vector<std::byte> theirs(lengths[1 - me]);
    messages.exchange(
        own, [&](int) { return std::span(theirs); }, [](int) { return true; });
    CHECK(theirs == std::vector<std::byte>(lengths[1 - me], std::byte(7)));
  });
  CHECK(problems == std::vector<std::string>(2));
}

TEST_CASE("numbers become their sums over the nodes, in the order of the nodes") {
  const auto problems = onLinks(3, [](NodeLink& link) {
    NodeMessages channel(link, 5);
    // 1e16 + 1 is 1e16, so another order gives another sum.
    const std::array first{1.0, 1e16, -1e16}, second{1e16, -1e16, 1.0};
    const auto n = static_cast<std::size_t>(link.node());
    for (int again = 0; again < 2; ++again) {
      std::array values{first[n], second[n]};
      channel.sum(values);
      CHECK(values[0] == 0);  // (1 + 1e16) - 1e16
      CHECK(values[1] == 1);
    }
  });
  CHECK(problems == Problems(3));
}

TEST_CASE("one node's values are copied to another, and nowhere else") {
  const auto problems = onLinks(3, [](NodeLink& link) {
    NodeMessages channel(link, 5);
    const Tensor own = Tensor::zeros({20000}), into = Tensor::zeros({20000});  // more than one piece
    for (float& x : Tensor(own).span<float>()) x = static_cast<float>(1 + link.node());
    channel.copy(own, /*from=*/2, /*to=*/0, into);
    CHECK(into.data<float>()[0] == (link.node() == 0 ? 3 : 0));
    CHECK(into.data<float>()[19999] == (link.node() == 0 ? 3 : 0));
  });
  CHECK(problems == Problems(3));
}

TEST_CASE("messages of different lengths reach the participants of the same number on all nodes") {
  const auto problems = onLinks(3, [](NodeLink& link) {
    NodeMessages channel(link, 5);
    NumberedMessages messages(static_cast<std::size_t>(link.node()));
    channel.allGather(/*local=*/0, messages);
    for (std::size_t p = 0; p < 3; ++p) CHECK(messages.bodies[p] == std::vector<std::byte>(p, std::byte(p)));
    CHECK(messages.arrivals == 0 + 1 + 2 - messages.own);  // the others
  });
  CHECK(problems == Problems(3));
}

TEST_CASE("a message that no participant can have sent is the fault of its node") {
  // Local 2: lengths 4 and 5 are impossible; local 1: what has arrived of participant 3 is.
  for (const auto& [local, problem] :
       {std::pair(2, "node 0 (virtual0) has sent an invalid message: a length of 4"),
        {1, "node 1 (virtual1) has sent an invalid message: three"}}) {
    const auto problems = onLinks(2, [local = local](NodeLink& link) {
      NodeMessages channel(link, 5);
      NumberedMessages messages(static_cast<std::size_t>(2 * local + link.node()));
      channel.allGather(local, messages);
    });
    CHECK(std::ranges::count(problems, problem) > 0);
  }
}
