// Memory runs out at the k-th allocation of a network's first step, in which everything is planned.
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/fuzz/networks.h"
#include "tests/support/allocations.h"
#include "tests/support/environment.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kExamples = 4;
using Lasting = FailingMalloc::Lasting;

/// Each trial plans anew, with all allocations.
const Environment kNoPrimitives("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0");

/// Features are 0 and 1.
Batch batchFor(const std::vector<GraphInput>& inputs) {
  Batch batch;
  for (const auto& [name, shape] : inputs) {
    auto values = Batch::ensure(batch.features, name, shape.prepend(kExamples)).span<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 2);
  }
  return batch;
}

void addClasses(Batch& batch, const std::string& name) {
  std::ranges::fill(Batch::ensure(batch.labels, name, {kExamples}, DType::Int64).span<std::int64_t>(), 1);
}

void addTargets(Batch& batch, const std::string& name, std::int64_t targets) {
  std::ranges::fill(Batch::ensure(batch.labels, name, {kExamples, targets}).span<float>(), 0.5f);
}

/// Trains the first step with every nth allocation failing, by failing_malloc.cpp.
/// @param make  an initialised network.
template <typename Make>
void checkFirstStep(const Make& make, const Batch& batch) {
  const auto undisturbed = make();
  undisturbed->step(batch).wait();
  const auto expected = stateBits(*undisturbed);
  const auto fresh = make();
  const char* const stride = std::getenv("MUSTER_MEMORY_STRIDE");
  for (const auto lasting : {Lasting::No, Lasting::Yes}) {
    long nth = 0;
    for (bool any = true; any; nth += stride ? std::atol(stride) : 29) {
      REQUIRE(nth < 1'000'000);
      CAPTURE(nth);
      const auto network = make();
      bool failed = false;
      {
        const FailingMalloc shortage(nth, lasting);
        try {
          network->step(batch).wait();
        } catch (const std::bad_alloc&) {
          failed = true;
        } catch (const OutOfMemory&) {
          failed = true;
        }
        any = shortage.any();
      }
      if (failed) {
        network->copyStateFrom(*fresh);
        network->step(batch).wait();
      }
      CHECK((stateBits(*network) == expected));
    }
    MESSAGE(nth << " allocations");
  }
}

/// With classes, or with two targets if the loss wants these.
Batch batchOf(const MultiLayerConfiguration& configuration) {
  Batch classes = batchFor({{"features", configuration.inputShape}});
  if (configuration.layers.front().module().type() == "embedding")
    std::ranges::fill(Batch::ensureOnly(classes.features, "features",
                                        configuration.inputShape.prepend(kExamples), DType::Int64)
                          .span<std::int64_t>(),
                      1);
  Batch targets = classes;
  addClasses(classes, "labels");
  addTargets(targets, "labels", 2);
  MultiLayerNetwork network(configuration);
  network.init();
  try {
    network.step(classes).wait();
    return classes;
  } catch (const InvalidArgument&) {
    return targets;
  }
}

}  // namespace

TEST_CASE("the first step of every kind of chain runs out of memory: an error, and the next step succeeds") {
  for (const auto& configurations : {fuzz::smallChains(), fuzz::wideChains()})
    for (const auto& configuration : configurations) {
      CAPTURE(configuration.layers.front().module().type());
      CAPTURE(configuration.inputShape.toString());
      checkFirstStep(
          [&] {
            auto network = std::make_unique<MultiLayerNetwork>(configuration);
            network->init();
            return network;
          },
          batchOf(configuration));
    }
}

TEST_CASE("the first step of a graph runs out of memory: an error, and the next step succeeds") {
  const auto configuration = fuzz::smallGraph();
  Batch batch = batchFor(configuration.inputs);
  addClasses(batch, "first");
  addClasses(batch, "second");
  checkFirstStep(
      [&] {
        auto network = std::make_unique<ComputationGraph>(configuration);
        network->init();
        return network;
      },
      batch);
}
