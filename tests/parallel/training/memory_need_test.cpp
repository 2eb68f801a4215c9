#include "muster/parallel/training/memory_need.h"

#include "muster/core/data/in_memory.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/strategies.h"
#include "muster/parallel/training/internals.h"
#include "tests/support/failure.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// 100,000 parameters, already whole cache lines; momentum has the same size.
constexpr std::int64_t kSize = 100'000;
constexpr std::int64_t kBlock = 4 * kSize;

ToyModel large() {
  return ToyModel({.size = kSize, .training = halfNesterovs()});
}

/// Simulates a control group that leaves this process so many bytes.
struct Limited {
  explicit Limited(std::int64_t bytes) {
    std::filesystem::create_directories(root / "proc/self");
    std::filesystem::create_directories(root / "sys/fs/cgroup");
    writeFile(root / "proc/self/cgroup", "0::/\n");
    writeFile(root / "sys/fs/cgroup/memory.current", "1000000");
    leave(bytes);
  }
  void leave(std::int64_t bytes) const {
    writeFile(root / "sys/fs/cgroup/memory.max", std::to_string(1'000'000 + bytes));
  }
  ParallelWrapper wrapper(Model& model, int workers) const {
    return toyWrapper(model, workers).internals({.root = root.path()}).prefetchBuffer(2).build();
  }
  TemporaryDirectory root;
};

std::int64_t needOf(Model& model, const AnyStrategy& strategy, int workers) {
  return MemoryNeed(model, *strategy.make(), {.local = workers}).bytes();
}

}  // namespace

TEST_CASE("the memory need counts the model's state a worker, merged copies and the strategy's blocks") {
  auto model = large();
  const MemoryNeed need(model, *Averaging{}.make(), {.local = 4});
  // Parameters, gradients, momentum; counters and padding are a few bytes.
  CHECK(need.bytesOfWorker() == doctest::Approx(3 * kBlock).epsilon(1e-3));
  // Merged copies of parameters and momentum.
  CHECK(need.bytes() == doctest::Approx((4 * 3 + 2) * kBlock).epsilon(1e-3));
  const auto bytes = [&](const OuterAveraging& rule, int groups = 1) {
    return MemoryNeed(model, *rule.make(), {.local = 4}, groups).bytes();
  };
  const auto plain = bytes({}), coded = bytes({.codec = Int8Codec{}});  // coded replicas and residuals
  CHECK(bytes({.momentum = 0.5}) >= plain);
  CHECK(coded - plain == doctest::Approx(4 * 2 * kBlock).epsilon(1e-3));
  // With groups, each group sends, and also holds the mean of its workers.
  CHECK(bytes({.codec = Int8Codec{}}, 2) - plain == doctest::Approx(2 * 3 * kBlock).epsilon(1e-3));
}

TEST_CASE("with shared gradients the memory need of a node counts the longest messages of all workers") {
  auto model = large();
  // A residual a worker, a mean residual in float64, and a sixteenth of a replica for each message.
  for (const int nodes : {1, 8}) {
    const NodePlace place{.nodes = nodes, .local = 4};
    const auto more = MemoryNeed(model, *SharedGradients{}.make(), place).bytes() -
                      MemoryNeed(model, *Averaging{}.make(), place).bytes();
    CHECK(more == doctest::Approx((4 + 2 + 4.0 * nodes / 16) * kBlock).epsilon(1e-3));
  }
}

TEST_CASE("over nodes, workers on GPUs have host mirrors of the merged blocks, and of nothing else") {
  auto model = large();
  const auto needOf = [&](const AnyStrategy& strategy, bool onCpu, bool mirrored) {
    return MemoryNeed(model, *strategy.make(), {.nodes = 2, .local = 3}, 1,
                      {.onCpu = onCpu, .mirrored = mirrored});
  };
  // Parameters and momentum; merged copies of both, and what they were before a merge.
  const auto onGpus = needOf(Averaging{}, false, true),
             gradients = needOf(SynchronousGradients{}, false, true);
  CHECK(onGpus.bytesOfWorker() == 2 * kBlock);
  CHECK(onGpus.bytes() == doctest::Approx((3 * 2 + 4) * kBlock).epsilon(1e-3));
  CHECK(onGpus.describe() == "");  // below a megabyte
  CHECK(gradients.bytesOfWorker() == 3 * kBlock);
  CHECK(gradients.describe() == ", each at least 1.2 MB of host memory");
  CHECK(needOf(Averaging{}, true, true).bytes() - needOf(Averaging{}, true, false).bytes() == 3 * 2 * kBlock);
}

TEST_CASE("build() refuses a training that exceeds the memory limit, and names the largest parts") {
  auto model = large();
  const auto need = needOf(model, Averaging{}, 4);
  const std::string text = thrown<OutOfMemory>([&] { Limited(need - 1).wrapper(model, 4); });
  CHECK(text ==
        "4 workers need at least 5.6 MB of memory, but of the 6.6 MB that this process may use (cgroup) 5.6 "
        "MB are left; most of it: parameters 4 x 0.4 MB, gradients 4 x 0.4 MB, updater state 4 x 0.4 MB; "
        "take fewer workers, a smaller model or fewer batches");
  CHECK(model.control().replicated == 0);
  const Limited enough(need);
  const auto wrapper = enough.wrapper(model, 4);
  CHECK(contains(wrapper.plan(),
                 "4 workers on cpu (1 thread each, not pinned, each at least 1.2 MB), averaging"));
}

TEST_CASE("once a batch is known fit() and evaluate() refuse to exceed the memory limit, else they train") {
  auto model = large();
  const auto need = needOf(model, Averaging{}, 2);
  ToyIterator data(randomBatches(1, 6, 10, kSize), kSize);  // 4 MB per batch; 2 + 2 batches circulate
  {
    const Limited limited(need + 15'000'000);
    auto wrapper = limited.wrapper(model, 2);
    const std::string text = thrown<OutOfMemory>([&] { wrapper.fit(data); });
    CHECK_MESSAGE(contains(text, "most of it: batches 4 x 4.0 MB, "), text);
    CHECK(model.control().replicated == 0);
    CHECK(thrown<OutOfMemory>([&] { wrapper.evaluate(data); }) == text);
  }
  const Limited enough(need + 17'000'000);
  auto wrapper = enough.wrapper(model, 2);
  wrapper.fit(data);
  CHECK(model.iteration() == 3);
}

TEST_CASE("once a batch is known the need includes activations, in evaluation those of the output") {
  constexpr std::int64_t kInputs = 20, kUnits = 1000, kBatch = 512;
  constexpr std::int64_t kActivations = 4 * kBatch * kUnits;
  MultiLayerNetwork network(
      {.updater = Sgd{}, .inputShape = {kInputs}, .layers = {Dense{.units = kUnits}, Output{.classes = 3}}});
  network.init();
  InMemoryDataSetIterator data(Tensor::zeros({kBatch, kInputs}), Tensor::zeros({kBatch}, DType::Int64),
                               kBatch);
  Batch first;
  data.reset(0);
  REQUIRE(data.next(first));
  MemoryNeed need(network, *Averaging{}.make(), {.local = 2});
  need.addBatches(first, 2 + 2);
  const auto before = need.bytes();
  CHECK(need.stepsMayExceed({.left = 65 * before, .name = "cgroup"}));
  CHECK_FALSE(need.stepsMayExceed({.left = 66 * before + 10'000'000, .name = "cgroup"}));
  need.addStep(network, first, true, {});
  // Per worker: the hidden activations with their gradients, thread and libraries.
  CHECK(need.bytes() - before > 2 * 2 * kActivations);
  CHECK(need.bytes() - before < 2 * (3 * kActivations + 1'400'000));

  const Limited limited(need.bytes() - 1);
  auto wrapper = limited.wrapper(network, 2);
  const std::string text = thrown<OutOfMemory>([&] { wrapper.fit(data); });
  CHECK_MESSAGE(contains(text, "most of it: activations 2 x "), text);
  CHECK(wrapper.evaluate(data).examples() == kBatch);
  const Limited enough(need.bytes());
  enough.wrapper(network, 2).fit(data);
  CHECK(network.epoch() == 1);
}

TEST_CASE("an evaluation that exceeds the memory limit is refused without blaming the iterator") {
  constexpr std::int64_t kInputs = 2000, kBatch = 500;  // 4 MB per batch, 0.16 MB of parameters
  const auto data = [](std::int64_t batches) {
    const std::int64_t rows = batches * kBatch;
    return InMemoryDataSetIterator(Tensor::zeros({rows, kInputs}), Tensor::zeros({rows}, DType::Int64),
                                   kBatch);
  };
  MultiLayerNetwork network({.inputShape = {kInputs}, .layers = {Dense{.units = 20}, Output{.classes = 3}}});
  network.init();
  const Limited limited(1'000'000'000);
  auto wrapper = limited.wrapper(network, 2);
  auto three = data(3), four = data(4), eight = data(8);
  CHECK(wrapper.evaluate(eight).examples() == 8 * kBatch);
  limited.leave(10'000'000);  // room for two more batches than the first, of 2 + 2
  CHECK(wrapper.evaluate(three).examples() == 3 * kBatch);
  for (auto* const many : {&four, &eight})
    CHECK(thrown<TrainingError>([&] { wrapper.evaluate(*many); }) ==
          "evaluate: out of memory: the batches of an evaluation take 12.0 MB, but of the 11.0 MB that this "
          "process may use (cgroup) 9.9 MB are left besides a hundredth that stays free; smaller batches and "
          "fewer workers need less");
  auto model = large();
  auto one = limited.wrapper(model, 1);
  InMemoryDataSetIterator single(Tensor::zeros({1, 3}), Tensor::zeros({1}, DType::Int64), 1);
  CHECK(one.evaluate(single).examples() == 1);
  model.block(BlockKind::Parameters).values.data<float>()[0] = 1;
  limited.leave(300'000);
  CHECK(
      thrown<TrainingError>([&] { one.evaluate(single); }) ==
      "evaluate: worker 0 on cpu could not take the model's state: the state that a replica keeps meanwhile "
      "takes 0.4 MB, but of the 1.3 MB that this process may use (cgroup) 0.3 MB are left besides a "
      "hundredth that stays free; fewer workers need less");
}
