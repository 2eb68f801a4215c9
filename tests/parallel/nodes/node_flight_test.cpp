#include "muster/parallel/nodes/node_flight.h"

#include <algorithm>
#include <array>

#include "tests/parallel/nodes/on_links.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("launched work is done in its order, and a landing waits for the first launches") {
  onLinks(1, [](NodeLink& link) {
    std::string done;
    Flight flight(link);
    CHECK(flight.idle());
    for (const char* const name : {"a", "b", "c"}) flight.launch([&done, name](Context&) { done += name; });
    CHECK(flight.launches() == 3);
    flight.land(3);
    CHECK(done == "abc");
    CHECK(flight.idle());
    flight.launch([&done](Context&) { done += "d"; });
    CHECK(flight.wait());
    CHECK(done == "abcd");
  });
}

TEST_CASE("the first failure is thrown at every landing, and the link fails") {
  onLinks(1, [](NodeLink& link) {
    Flight flight(link);
    flight.launch([](Context&) { throw Error("boom"); });
    flight.launch([](Context&) { throw Error("later"); });
    CHECK_FALSE(flight.wait());
    for (int again = 0; again < 2; ++again) CHECK(thrown<Error>([&] { flight.land(2); }) == "boom");
    CHECK(link.failed());
  });
}

TEST_CASE("means over nodes are formed while workers train, from values that are kept until they land") {
  // Two nodes with a worker each, of weights 1 and 3: (1 + 3 * 5) / 4 = 4 and (2 + 3 * 6) / 4 = 5.
  const auto problems = onLinks(2, [](NodeLink& link) {
    const Tensor values = Tensor::zeros({2}), into = Tensor::zeros({2});
    values.data<float>()[0] = link.node() == 0 ? 1 : 5;
    values.data<float>()[1] = link.node() == 0 ? 2 : 6;
    const std::vector<Tensor> tensors{values, values};  // only this node's is read
    NodeFlight flight(link, /*local=*/1, /*channel=*/7);
    CHECK(flight.flight().idle());
    {
      const std::vector<double> weights{1, 3};  // copied by the launch
      flight.launch({.tensors = tensors, .weights = weights, .into = into}, {0, 2});
    }
    CHECK(flight.flight().launches() == 1);
    flight.flight().land(1);
    CHECK(into.data<float>()[0] == 4);
    CHECK(into.data<float>()[1] == 5);
    CHECK(flight.flight().wait());
    CHECK_NOTHROW(flight.flight().land(0));  // throws failures so far
  });
  CHECK(problems == std::vector<std::string>(2));
}

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
