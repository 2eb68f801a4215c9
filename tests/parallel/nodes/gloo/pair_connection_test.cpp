#include "muster/parallel/nodes/gloo/pair_connection.h"

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "muster/parallel/nodes/gloo/no_sigpipe.h"
#include "muster/parallel/nodes/node_transport.h"
#include "tests/parallel/nodes/stored_texts.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<gloo::transport::Device> loopback() {
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  attributes.ai_family = AF_INET;
  return gloo::transport::tcp::CreateDevice(attributes);
}

/// Node `node` of three connects itself to `other`, and each sends its number to the other one.
int numberFrom(NodeStore& store, int node, int other) {
  blockSigpipe();
  const auto device = loopback();
  const auto pair = connectPair(*device, {store, "run-", "word", node, 3}, other, 60s);
  int theirs = -1;
  const auto sent = pair->createUnboundBuffer(&node, sizeof node),
             received = pair->createUnboundBuffer(&theirs, sizeof theirs);
  received->recv(other, 1);
  sent->send(other, 1);
  CHECK(received->waitRecv(nullptr, 60s));
  CHECK(sent->waitSend(nullptr, 60s));
  return theirs;
}

}  // namespace

TEST_CASE("two nodes that connect themselves to each other exchange messages, whatever old texts there are") {
  for (const std::string old :
       {"", "nonsense", "word 1 zz\n", "word 1 00ff\n", "other 7 00ff\n", "word -1 \n"}) {
    StoredTexts store;
    if (!old.empty()) store.put(addressName("run-", 2, 0), old);
    std::jthread second([&] { CHECK(numberFrom(store, 2, 0) == 0); });
    CHECK(numberFrom(store, 0, 2) == 2);
  }
}

TEST_CASE("a node that never publishes its address is not waited for") {
  StoredTexts store;
  const auto device = loopback();
  CHECK(thrown<NodeFailure>([&] {
          connectPair(*device, {store, "run-", "word", 0, 2}, 1, 50ms);
        }) == "it has not published its address");
  CHECK(store.names("") == std::vector<std::string>{"run-address-0-1"});
}

TEST_CASE("Gloo's words are told without their place in its source") {
  CHECK(wordsOfGloo("[gloo/pair.cc:12] Connection closed") == "Connection closed");
  for (const std::string text : {"", "Connection closed", "[closed", "closed [a] b"})
    CHECK(wordsOfGloo(text) == text);
}
