#include "muster/parallel/worker/placement.h"

#include <doctest/doctest.h>

using namespace muster;

namespace {

using Cores = std::vector<int>;

std::vector<Cores> coresOf(const std::vector<Placement>& placements) {
  std::vector<Cores> all;
  for (const auto& placement : placements) all.push_back(placement.cores);
  return all;
}

}  // namespace

TEST_CASE("workers on the CPU get cores of their own, as many as their threads") {
  CHECK(coresOf(placeWorkers(2, {Device::cpu()}, 1, true, {0, 1, 2, 3})) == std::vector<Cores>{{0}, {1}});
  CHECK(coresOf(placeWorkers(2, {Device::cpu()}, 2, true, {0, 2, 5, 7})) ==
        std::vector<Cores>{{0, 2}, {5, 7}});
  CHECK(coresOf(placeWorkers(1, {Device::cpu()}, 3, true, {4, 5, 6})) == std::vector<Cores>{{4, 5, 6}});
}

TEST_CASE("where the cores do not suffice, nobody is pinned") {
  CHECK(coresOf(placeWorkers(3, {Device::cpu()}, 1, true, {0, 1})) == std::vector<Cores>(3));
  CHECK(coresOf(placeWorkers(2, {Device::cpu()}, 2, true, {0, 1, 2})) == std::vector<Cores>(2));
}

TEST_CASE("pinThreads(false): nobody is pinned") {
  CHECK(coresOf(placeWorkers(2, {Device::cpu()}, 1, false, {0, 1, 2, 3})) == std::vector<Cores>(2));
}

TEST_CASE("worker i runs on device i mod D, and only those on the CPU take cores") {
  const auto placements = placeWorkers(5, {Device::cuda(1), Device::cpu()}, 1, true, {0, 1});
  for (int i = 0; i < 5; ++i)
    CHECK(placements[static_cast<std::size_t>(i)].device == (i % 2 ? Device::cpu() : Device::cuda(1)));
  CHECK(coresOf(placements) == std::vector<Cores>{{}, {0}, {}, {1}, {}});
}

TEST_CASE("the plan in words") {
  CHECK(describe(placeWorkers(2, {Device::cpu()}, 1, true, {0, 1}), 1) ==
        "2 workers on cpu (1 thread each, pinned to cores 0, 1)");
  CHECK(describe(placeWorkers(1, {Device::cpu()}, 1, true, {3}), 1) ==
        "1 worker on cpu (1 thread, pinned to core 3)");
  CHECK(describe(placeWorkers(3, {Device::cpu()}, 2, true, {0, 1}), 2) ==
        "3 workers on cpu (2 threads each, not pinned)");
  CHECK(describe(placeWorkers(2, {Device::cpu(), Device::cuda(0)}, 1, false, {}), 1) ==
        "2 workers on cpu, cuda:0 (1 thread each, not pinned)");
}
