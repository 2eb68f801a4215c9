// Compares the predicted memory of a training over nodes with the memory that it uses.
#include <malloc.h>

#include <barrier>

#include "muster/parallel/strategies.h"
#include "muster/parallel/training/memory_need.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/rule_wrapper.h"
#include "tests/support/skip.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kSize =
    600'000;  // parameters: larger than what an arena of the C library may have free
constexpr std::int64_t kBlock = 4 * kSize;

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
/// Memory that the C library has taken from the system for blocks larger than half the model.
std::int64_t inLargeBlocks() {
  mallopt(M_MMAP_THRESHOLD, kBlock * 6 / 10);
  return static_cast<std::int64_t>(mallinfo2().hblkhd);
}
#else
std::int64_t inLargeBlocks() {
  return 0;
}
#endif

/// False with a sanitizer, which has its own allocator.
bool countsLargeBlocks() {
  const auto before = inLargeBlocks();
  const std::unique_ptr<void, decltype(&std::free)> probe(std::malloc(kBlock), &std::free);
  return inLargeBlocks() - before >= kBlock;
}

std::int64_t bytesOf(std::span<const NamedValues> values) {
  std::int64_t bytes = 0;
  for (const auto& one : values) bytes += static_cast<std::int64_t>(one.values.bytes());
  return bytes;
}

}  // namespace

TEST_CASE("a training over nodes uses the memory that was predicted") {
  if (!countsLargeBlocks()) return skip("this C library does not tell what it has taken");
  const TopKCodec topK{.share = 0.01};
  const std::vector<AnyStrategy> onDevices = {Averaging{.frequency = 2},
                                              OverlappedAveraging{.frequency = 3, .delay = 1, .codec = topK},
                                              SharedGradients{}};
  std::vector<AnyStrategy> rules = {Averaging{.frequency = 2, .codec = topK},
                                    OuterAveraging{.frequency = 2, .momentum = 0.5, .codec = topK},
                                    OverlappedAveraging{.frequency = 3, .delay = 1},
                                    StreamingOuter{.frequency = 3, .fragments = 1, .codec = topK},
                                    Gossip{.frequency = 2}};
  rules.insert(rules.end(), onDevices.begin(), onDevices.end());
  struct Setting {
    Places places;
    int devices = 0;
  };
  for (const auto& [places, devices] : {Setting{{2, 2}}, Setting{{3, 1}}, Setting{{2, 2}, 2}}) {
    const auto batches = randomBatches(1, 4 * places.all(), 1, kSize);
    for (const auto& rule : devices > 0 ? onDevices : rules) {
      CAPTURE(rule.make()->describe());
      CAPTURE(places);
      CAPTURE(devices);
      VirtualNetwork network(places.nodes);
      std::barrier together(places.nodes);
      std::atomic<std::int64_t> needed = 0, kept = 0;
      std::int64_t before = 0, after = 0;
      const auto onFirst = [&](const Nodes& here, auto measure) {  // on node 0, while the other nodes wait
        together.arrive_and_wait();
        if (here.node() == 0) measure();
        together.arrive_and_wait();
      };
      onAll(network, [&](const Nodes& here) {
        ToyModel model({.size = kSize, .training = halfNesterovs()});
        model.state();  // allocates the updater's state
        ToyIterator share(batches, kSize);
        Batch first;
        share.reset(0);
        share.next(first);
        onFirst(here, [&] { before = inLargeBlocks(); });
        try {
          auto wrapper = builderOf(model, places.workers, rule)
                             .internals({.pretendedDevices = devices})
                             .prefetchBuffer(1)
                             .nodes(here)
                             .build();
          MemoryNeed need(model, *rule.make(),
                          {.node = here.node(), .nodes = places.nodes, .local = places.workers}, 1,
                          {.mirrored = devices > 0});
          need.addBatches(first, 1 + places.workers);
          wrapper.fit(share, 1);
          model.control().forgetSteps();
          needed += need.bytes();
          const auto traits = rule.make()->traits(places.nodes * places.workers);
          if (traits.hostBytes) needed -= traits.hostBytes(kSize);  // small blocks
          if (devices > 0)
            needed += places.workers * kBlock;  // mirrors of the gradients, which nothing touches
          kept += bytesOf(model.strategyState()) + bytesOf(model.listenerState()) +
                  bytesOf(model.trainingState());
          onFirst(here, [&] { after = inLargeBlocks(); });
        } catch (...) {
          together.arrive_and_drop();
          throw;
        }
      });
      const auto blocks = static_cast<double>(after - before - kept) / kBlock;
      CHECK(blocks == doctest::Approx(static_cast<double>(needed) / kBlock).epsilon(0.5 / blocks));
    }
  }
}
