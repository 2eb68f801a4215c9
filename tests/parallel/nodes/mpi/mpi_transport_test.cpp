// A single process, which no launcher has started.
#include "muster/parallel/nodes/mpi/mpi_transport.h"

#include "tests/support/test.h"

using namespace muster;
using Way = NodeMessage::Way;

// As in node_processes/node.cpp.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return 1;
}

namespace {

/// Advances all messages. @return the tickets of those that are done, once there are so many.
std::vector<int> doneIn(NodeTransport& transport, std::size_t count) {
  std::vector<int> done;
  while (done.size() < count) transport.poll(done);
  std::ranges::sort(done);
  return done;
}

}  // namespace

TEST_CASE("messages of a channel keep their order, a size is checked, and MPI ends with the transport") {
  auto transport = makeMpiTransport([] {});
  CHECK(transport->node() == 0);
  CHECK(transport->nodes() == 1);
  CHECK(transport->describe() == "MPI");
  CHECK(transport->host() != "");
  std::array<std::byte, 2> sent{std::byte{1}, std::byte{2}};
  std::array<std::byte, 4> received{};
  const auto bytes = std::span(received);
  transport->begin({Way::Receive, 0, 7, bytes.subspan(0, 1)}, 0);
  transport->begin({Way::Receive, 0, 7, bytes.subspan(1, 1)}, 1);
  transport->begin({Way::Receive, 0, 8, bytes.subspan(2, 2)}, 2);
  transport->begin({Way::Send, 0, 8, sent}, 3);
  CHECK(doneIn(*transport, 2) == std::vector{2, 3});
  for (const int i : {0, 1})
    transport->begin({Way::Send, 0, 7, std::span(sent).subspan(static_cast<std::size_t>(i), 1)}, 4 + i);
  CHECK(doneIn(*transport, 4) == std::vector{0, 1, 4, 5});
  CHECK(received == std::array{std::byte{1}, std::byte{2}, std::byte{1}, std::byte{2}});

  transport->begin({Way::Receive, 0, 9, bytes}, 6);
  transport->begin({Way::Send, 0, 9, sent}, 7);
  CHECK(test::thrown<NodeFailure>([&] { doneIn(*transport, 2); }) ==
        "node 0 has sent 2 bytes where 4 were expected");
  transport.reset();
  CHECK_REFUSED(makeMpiTransport([] {}),
                "nodes: MPI is finalised, and a process can initialise it only once");
}
