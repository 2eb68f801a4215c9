// Many nodes with the real code on a network with a virtual clock: 16 here, 256 in `./run soak long`.

#include "muster/parallel/nodes.h"
#include "tests/support/on_threads.h"
#include "tests/support/toy_wrapper.h"
#include "tests/support/virtual_network.h"
#include "tests/support/whole.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr VirtualNetwork::Link kLink{.bytesPerSecond = 12.5e6, .latency = 1e-6};

struct Training {
  std::int64_t bytes = 0;  // sent by each node
  double seconds = 0;
};

/// Trains one worker per node and merges after each batch. @param rounds  batches per node.
Training trainOn(int nodes, std::int64_t parameters, int rounds) {
  VirtualNetwork network(nodes, kLink);
  std::vector<std::vector<std::byte>> bits(static_cast<std::size_t>(nodes));
  const auto batches = randomBatches(3, nodes * rounds, 1, parameters);
  onThreads(nodes, [&](int n) {
    const Nodes here([&network, n] { return network.transport(n); }, std::chrono::minutes(10));
    ToyModel model({.size = parameters, .training = {.updater = Sgd{.learningRate = 0.5}}});
    ToyIterator share(batches, parameters);
    toyWrapper(model, 1, 1).nodes(here).build().fit(share);
    bits[static_cast<std::size_t>(n)] = stateBits(model);
  });
  for (const auto& one : bits) CHECK((one == bits.front() && !one.empty()));
  for (int n = 1; n < nodes; ++n) CHECK(network.bytesSent(n) == network.bytesSent(0));
  return {network.bytesSent(0), network.seconds()};
}

}  // namespace

TEST_CASE("many nodes send the bytes that muster compare's projection counts, in the projected time") {
  const int nodes = whole() ? 256 : 16;
  constexpr int kRounds = 3;
  // Slices begin at multiples of 16 elements; these sizes give all nodes equal slices.
  const std::int64_t few = 16 * nodes, many = 48 * nodes;
  const Training small = trainOn(nodes, few, kRounds), large = trainOn(nodes, many, kRounds);
  // A merge sends 2 (N - 1) / N of the model; the other messages do not depend on the model's size.
  CHECK(large.bytes - small.bytes == kRounds * 2 * (nodes - 1) * (many - few) / nodes * 4);
  for (const Training& one : {small, large}) {
    // Nodes wait for each other after each exchange and all send equally much, so the time is that of the
    // bytes plus a latency per exchange. A round has three exchanges; one of them has two messages, of which
    // the second may follow the first one's arrival. Start and end have fewer than twelve.
    const double sending = static_cast<double>(one.bytes) / kLink.bytesPerSecond;
    CHECK(one.seconds >= sending);
    CHECK(one.seconds <= sending * (1 + 1e-9) + (4 * kRounds + 12) * kLink.latency);
  }
}
