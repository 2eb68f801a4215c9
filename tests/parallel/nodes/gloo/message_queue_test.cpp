#include "muster/parallel/nodes/gloo/message_queue.h"

#include <gloo/transport/unbound_buffer.h>

#include "tests/support/thrown.h"

using namespace muster;
using muster::test::thrown;

TEST_CASE("what is done is taken once, and the senders of received messages are heard of") {
  Outcomes outcomes;
  std::vector<int> tickets, heard;
  const auto take = [&] { return outcomes.take(tickets, [&](int node) { heard.push_back(node); }); };
  CHECK_FALSE(take());
  outcomes.done(7, 1, /*received=*/true);
  outcomes.done(8, 2, /*received=*/false);
  CHECK(take());
  CHECK(tickets == std::vector<int>{7, 8});
  CHECK(heard == std::vector<int>{1});
  CHECK_FALSE(take());
}

TEST_CASE("losses are taken once; a failure of the network is thrown, the first one") {
  Outcomes outcomes;
  outcomes.lost(2, "its connection is closed");
  outcomes.lost(1, "it is gone, too");
  const auto loss = outcomes.nextLoss();
  REQUIRE(loss);
  CHECK(loss->node == 2);
  CHECK(loss->why == "its connection is closed");
  CHECK(outcomes.nextLoss()->node == 1);
  CHECK_FALSE(outcomes.nextLoss());
  for (const char* const text : {"first", "second"})
    outcomes.failed(std::make_exception_ptr(NodeFailure(text)));
  for (int again = 0; again < 2; ++again) CHECK(thrown<NodeFailure>([&] { outcomes.nextLoss(); }) == "first");
}

TEST_CASE("each outcome is news, until the listener is gone") {
  Outcomes outcomes;
  int news = 0;
  outcomes.onNews([&] { ++news; });
  outcomes.done(1, 1, true);
  outcomes.lost(1, "why");
  outcomes.failed(std::make_exception_ptr(NodeFailure("text")));
  CHECK(news == 3);
  outcomes.onNews({});
  outcomes.done(2, 1, true);
  CHECK(news == 3);
}
