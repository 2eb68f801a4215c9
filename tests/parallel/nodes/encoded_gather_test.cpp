#include "muster/parallel/nodes/encoded_gather.h"

#include "tests/parallel/nodes/on_links.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("nodes with a weight send their bytes to all, now or in flight") {
  const auto problems = onLinks(2, [](NodeLink& link) {
    EncodedGather gather(link, /*channel=*/5);
    Context context;
    CHECK(gather.flight() == nullptr);
    for (const bool flies : {false, true}) {
      CAPTURE(flies);
      if (flies) gather.allowFlights();
      for (const double other : {1.0, 0.0}) {
        CAPTURE(other);
        std::array<std::byte, 4> all{};  // two bytes of each node
        const auto own = std::span(all).subspan(2 * static_cast<std::size_t>(link.node()), 2);
        std::ranges::fill(own, std::byte(link.node() + 1));
        const std::vector<double> weights{1, other};
        int done = 0;
        gather.run(
            all, weights, [&](Context&) { ++done; }, /*later=*/true, context);
        if (flies) gather.flight()->land(gather.flight()->launches());
        CHECK(done == 1);
        const auto of1 = std::byte(other > 0 || link.node() == 1 ? 2 : 0);
        CHECK(all == std::array{std::byte(1), std::byte(1), of1, of1});
      }
    }
  });
  CHECK(problems == std::vector<std::string>(2));
}
