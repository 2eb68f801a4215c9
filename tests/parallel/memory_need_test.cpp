#include "muster/parallel/training/memory_need.h"

#include "muster/parallel/detail/internals.h"
#include "muster/parallel/strategies.h"
#include "tests/support/failure.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// 100,000 parameters, rounded up to whole cache lines as they are; momentum as many.
constexpr std::int64_t kSize = 100'000;
constexpr std::int64_t kBlock = 4 * kSize;

ToyModel large() {
  return ToyModel({.size = kSize, .training = halfNesterovs()});
}

/// As if this process's control group left it so many bytes.
struct Limited {
  explicit Limited(std::int64_t bytes) {
    std::filesystem::create_directories(root / "proc/self");
    std::filesystem::create_directories(root / "sys/fs/cgroup");
    writeFile(root / "proc/self/cgroup", "0::/\n");
    writeFile(root / "sys/fs/cgroup/memory.current", "1000000");
    writeFile(root / "sys/fs/cgroup/memory.max", std::to_string(1'000'000 + bytes));
  }
  ParallelWrapper wrapper(Model& model, int workers) const {
    return toyWrapper(model, workers).internals({.root = root.path()}).prefetchBuffer(2).build();
  }
  TemporaryDirectory root;
};

std::int64_t needOf(Model& model, const AnyStrategy& strategy, int workers) {
  return MemoryNeed(model, *strategy.make(), workers).bytes();
}

}  // namespace

TEST_CASE("a worker needs the model's state; merged copies and the strategy's blocks come to it") {
  auto model = large();
  const MemoryNeed need(model, *Averaging{}.make(), 4);
  // Parameters, gradients, momentum; counters and padding are a few bytes.
  CHECK(need.bytesOfWorker() == doctest::Approx(3 * kBlock).epsilon(1e-3));
  // Merged copies of parameters and momentum.
  CHECK(need.bytes() == doctest::Approx((4 * 3 + 2) * kBlock).epsilon(1e-3));
  const auto outer = needOf(model, OuterAveraging{.momentum = 0.5}, 4),
             plain = needOf(model, OuterAveraging{}, 4);
  CHECK(outer >= plain);
  const auto coded = needOf(model, OuterAveraging{.codec = Int8Codec{}}, 4);  // coded replicas and residuals
  CHECK(coded - plain == doctest::Approx(4 * 2 * kBlock).epsilon(1e-3));
}

TEST_CASE("build() refuses what the limit on memory has no room for, and names the largest parts") {
  auto model = large();
  const auto need = needOf(model, Averaging{}, 4);
  const std::string text = thrown<OutOfMemory>([&] { Limited(need - 1).wrapper(model, 4); });
  CHECK(text ==
        "4 workers need at least 5.6 MB of memory, but of the 6.6 MB that this process may use (cgroup) 5.6 "
        "MB are "
        "left; most of it: parameters 4 x 0.4 MB, gradients 4 x 0.4 MB, updater state 4 x 0.4 MB; take fewer "
        "workers, a smaller model or fewer batches");
  CHECK(model.control().replicated == 0);
  const Limited enough(need);
  const auto wrapper = enough.wrapper(model, 4);
  CHECK(contains(wrapper.plan(),
                 "4 workers on cpu (1 thread each, not pinned, each at least 1.2 MB), averaging"));
}

TEST_CASE("fit() and evaluate() refuse it once they know a batch, and train when there is room") {
  auto model = large();
  const auto need = needOf(model, Averaging{}, 2);
  ToyIterator data(randomBatches(1, 6, 10, kSize), kSize);  // 4 MB a batch, of which 2 + 2 circulate
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

TEST_CASE("small models and those of which nothing is known are not spoken of") {
  ToyModel model;
  CHECK_FALSE(contains(toyWrapper(model, 2).build().plan(), "MB"));
}
