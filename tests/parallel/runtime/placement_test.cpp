#include "muster/parallel/runtime/placement.h"

#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

using Cores = std::vector<int>;

/// Cores without a quota.
CpuShare all(Cores cores) {
  const int count = static_cast<int>(cores.size());
  return {std::move(cores), count};
}

std::vector<Cores> coresOf(const Placements& placements) {
  std::vector<Cores> each;
  for (const auto& worker : placements.workers) each.push_back(worker.cores);
  return each;
}

}  // namespace

TEST_CASE("workers on the CPU get cores of their own, one for each of their threads") {
  CHECK(coresOf(placeWorkers(2, {Device::cpu()}, 1, true, all({0, 1, 2, 3}))) ==
        std::vector<Cores>{{0}, {1}});
  CHECK(coresOf(placeWorkers(2, {Device::cpu()}, 2, true, all({0, 2, 5, 7}))) ==
        std::vector<Cores>{{0, 2}, {5, 7}});
  CHECK(coresOf(placeWorkers(1, {Device::cpu()}, 3, true, all({4, 5, 6}))) == std::vector<Cores>{{4, 5, 6}});
}

TEST_CASE("if there are too few cores, no worker is pinned") {
  CHECK(coresOf(placeWorkers(3, {Device::cpu()}, 1, true, all({0, 1}))) == std::vector<Cores>(3));
  CHECK(coresOf(placeWorkers(2, {Device::cpu()}, 2, true, all({0, 1, 2}))) == std::vector<Cores>(2));
}

TEST_CASE("if a quota gives less CPU time than the workers' threads need, no worker is pinned") {
  const CpuShare half{{0, 1, 2, 3}, 2};
  CHECK(coresOf(placeWorkers(2, {Device::cpu()}, 1, true, half)) == std::vector<Cores>{{0}, {1}});
  CHECK(coresOf(placeWorkers(3, {Device::cpu()}, 1, true, half)) == std::vector<Cores>(3));
  CHECK(coresOf(placeWorkers(2, {Device::cpu()}, 2, true, half)) == std::vector<Cores>(2));
  CHECK(coresOf(placeWorkers(4, {Device::cpu(), Device::cuda(0)}, 1, true, half)) ==
        std::vector<Cores>{{0}, {}, {1}, {}});
}

TEST_CASE("workers on GPUs leave a core free if there is one for each and one for the reader") {
  const auto spare = [](int workers, Device device, const CpuShare& share) {
    return placeWorkers(workers, {device}, 1, true, share).coresToSpare;
  };
  CHECK(spare(3, Device::cuda(0), all({0, 1, 2, 3})));
  CHECK_FALSE(spare(4, Device::cuda(0), all({0, 1, 2, 3})));
  CHECK_FALSE(spare(2, Device::cuda(0), {{0, 1, 2, 3}, 2}));
  CHECK(spare(1, Device::cuda(0), {{0, 1, 2, 3}, 2}));
  CHECK_FALSE(spare(1, Device::cpu(), all({0, 1, 2, 3})));
}

TEST_CASE("workers on the CPU leave no core for a reader if they are as many as the cores") {
  const auto none = [](int workers, std::vector<Device> devices, int threads, const CpuShare& share) {
    return placeWorkers(workers, devices, threads, true, share).noCoreForReader;
  };
  CHECK(none(2, {Device::cpu()}, 1, all({0, 1})));
  CHECK(none(3, {Device::cpu()}, 1, all({0, 1})));
  CHECK(none(1, {Device::cpu()}, 2, all({0, 1})));
  CHECK_FALSE(none(1, {Device::cpu()}, 1, all({0, 1})));
  // With a quota a reader runs on a core that no worker is pinned to.
  CHECK_FALSE(none(2, {Device::cpu()}, 1, {{0, 1, 2, 3}, 2}));
  CHECK_FALSE(none(4, {Device::cpu(), Device::cuda(0)}, 1, all({0, 1})));
  CHECK_FALSE(none(2, {Device::cuda(0)}, 1, all({0, 1})));
}

TEST_CASE("workers have cores of their own if all of them are pinned") {
  const auto own = [](int workers, std::vector<Device> devices, bool pin, const CpuShare& share) {
    return placeWorkers(workers, devices, 1, pin, share).ownCores;
  };
  CHECK(own(2, {Device::cpu()}, true, all({0, 1})));
  CHECK_FALSE(own(3, {Device::cpu()}, true, all({0, 1})));
  CHECK_FALSE(own(2, {Device::cpu()}, false, all({0, 1})));
  CHECK_FALSE(own(2, {Device::cpu()}, true, {{0, 1}, 1}));
  CHECK_FALSE(own(2, {Device::cpu(), Device::cuda(0)}, true, all({0, 1})));
}

TEST_CASE("this process's share has its cores, and no more CPU time than they have") {
  const auto share = CpuShare::ofProcess();
  CHECK(share.cores == availableCores());
  CHECK(share.parallelism >= 1);
  CHECK(share.parallelism <= static_cast<int>(share.cores.size()));
}

TEST_CASE("pinThreads(false): no worker is pinned") {
  CHECK(coresOf(placeWorkers(2, {Device::cpu()}, 1, false, all({0, 1, 2, 3}))) == std::vector<Cores>(2));
}

TEST_CASE("worker i runs on device i mod D, and only workers on the CPU occupy cores") {
  const auto placements = placeWorkers(5, {Device::cuda(1), Device::cpu()}, 1, true, all({0, 1}));
  for (int i = 0; i < 5; ++i)
    CHECK(placements.workers[static_cast<std::size_t>(i)].device ==
          (i % 2 ? Device::cpu() : Device::cuda(1)));
  CHECK(coresOf(placements) == std::vector<Cores>{{}, {0}, {}, {1}, {}});
}

TEST_CASE("the plan of the placement is described in words") {
  CHECK(describe(placeWorkers(2, {Device::cpu()}, 1, true, all({0, 1})), 1) ==
        "2 workers on cpu (1 thread each, pinned to cores 0, 1)");
  CHECK(describe(placeWorkers(1, {Device::cpu()}, 1, true, all({3})), 1) ==
        "1 worker on cpu (1 thread, pinned to core 3)");
  CHECK(describe(placeWorkers(3, {Device::cpu()}, 2, true, all({0, 1})), 2) ==
        "3 workers on cpu (2 threads each, not pinned: 6 threads for 2 cores)");
  CHECK(describe(placeWorkers(2, {Device::cpu()}, 1, true, {{0, 1, 2}, 1}), 1) ==
        "2 workers on cpu (1 thread each, not pinned: 2 threads, but the CPU quota allows 1 core)");
  CHECK(describe(placeWorkers(2, {Device::cpu(), Device::cuda(0)}, 1, false, all({0})), 1) ==
        "2 workers on cpu, cuda:0 (1 thread each, not pinned)");
  auto rounded = placeWorkers(1, {Device::cpu()}, 1, false, all({0}));
  rounded.workers[0].mathMode = MathMode::BFloat16;
  CHECK(describe(rounded, 1) == "1 worker on cpu (1 thread, not pinned, products in bf16)");
}

TEST_CASE("workers of two wrappers are pinned to different cores, or not pinned") {
  const auto cores = CpuShare::ofProcess().cores;
  ToyModel model;
  const auto build = [&](int workers) {
    auto builder = ParallelWrapper::Builder(model);
    return builder.workers(workers).build();
  };
  auto first = build(1);
  if (first.plan().find("pinned to core") == std::string::npos) {
    MESSAGE("another process has pinned its workers here: " << first.plan());
    return;
  }
  auto second = build(1);
  CHECK(second.plan() != first.plan());
  if (cores.size() == 1)
    CHECK(second.plan().find("not pinned: 1 thread, but other pinned threads have most of 1 core") !=
          std::string::npos);
  // Not enough cores are left to pin all workers.
  CHECK(build(static_cast<int>(cores.size())).plan().find("not pinned: ") != std::string::npos);
}
