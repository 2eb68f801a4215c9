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

TEST_CASE(
    "workers on the CPU are pinned if they have cores of their own; GPUs' workers leave them to others") {
  const std::vector<Device> cpu{Device::cpu()}, gpu{Device::cuda(0)}, both{Device::cpu(), Device::cuda(0)};
  const CpuShare two = all({0, 1}), three = all({0, 1, 2}), four = all({0, 1, 2, 3}), halfOfTwo{{0, 1}, 1},
                 halfOfFour{{0, 1, 2, 3}, 2};
  const struct {
    int workers;
    std::vector<Device> devices;
    int threads;
    bool pin;
    CpuShare share;
    std::vector<Cores> cores;
    std::string_view facts;  // of the workers: own cores; cores to spare, or none for the reader
  } rows[] = {{2, cpu, 1, true, four, {{0}, {1}}, "own"},
              {2, cpu, 2, true, all({0, 2, 5, 7}), {{0, 2}, {5, 7}}, "own, none"},
              {1, cpu, 3, true, all({4, 5, 6}), {{4, 5, 6}}, "own, none"},
              {1, cpu, 1, true, two, {{0}}, "own"},
              {2, cpu, 1, true, two, {{0}, {1}}, "own, none"},
              {1, cpu, 2, true, two, {{0, 1}}, "own, none"},
              // Too few cores.
              {3, cpu, 1, true, two, {{}, {}, {}}, "none"},
              {2, cpu, 2, true, three, {{}, {}}, "none"},
              // A quota gives less CPU time than the threads need; a reader runs on a core without a worker.
              {2, cpu, 1, true, halfOfFour, {{0}, {1}}, "own"},
              {3, cpu, 1, true, halfOfFour, {{}, {}, {}}, ""},
              {2, cpu, 2, true, halfOfFour, {{}, {}}, "none"},
              {2, cpu, 1, true, halfOfTwo, {{}, {}}, "none"},
              {4, both, 1, true, halfOfFour, {{0}, {}, {1}, {}}, ""},
              // Asked not to pin.
              {2, cpu, 1, false, four, {{}, {}}, ""},
              {2, cpu, 1, false, two, {{}, {}}, "none"},
              // On GPUs a core is left for each worker and the reader, or not.
              {3, gpu, 1, true, four, {{}, {}, {}}, "spare"},
              {4, gpu, 1, true, four, {{}, {}, {}, {}}, ""},
              {2, gpu, 1, true, halfOfFour, {{}, {}}, ""},
              {1, gpu, 1, true, halfOfFour, {{}}, "spare"},
              {2, gpu, 1, true, two, {{}, {}}, ""},
              {4, both, 1, true, two, {{0}, {}, {1}, {}}, ""},
              {2, both, 1, true, two, {{0}, {}}, ""}};
  for (const auto& [workers, devices, threads, pin, share, cores, facts] : rows) {
    CAPTURE(facts);
    const Placements placed = placeWorkers(workers, devices, threads, pin, share);
    CAPTURE(describe(placed, threads));
    CHECK(coresOf(placed) == cores);
    CHECK(placed.ownCores == facts.starts_with("own"));
    CHECK(placed.coresToSpare == facts.starts_with("spare"));
    CHECK(placed.noCoreForReader == facts.ends_with("none"));
  }
}

TEST_CASE("this process's share has its cores, and no more CPU time than they have") {
  const auto share = CpuShare::ofProcess();
  CHECK(share.cores == availableCores());
  CHECK(share.parallelism >= 1);
  CHECK(share.parallelism <= static_cast<int>(share.cores.size()));
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
