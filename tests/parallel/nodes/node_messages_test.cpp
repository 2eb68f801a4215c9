#include "muster/parallel/nodes/node_messages.h"

#include "tests/parallel/nodes/on_links.h"

using namespace muster;
using namespace muster::test;

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
