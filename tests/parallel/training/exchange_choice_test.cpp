#include "muster/parallel/training/exchange_choice.h"

#include <doctest/doctest.h>

#include "muster/parallel/exchange/device_exchange.h"
#include "muster/parallel/exchange/host_exchange.h"
#include "muster/parallel/strategies/strategy_traits.h"
#include "muster/parallel/training/node_place.h"
#include "muster/parallel/training/worker_blocks.h"
#include "tests/parallel/replicas.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Replicas of two workers: parameters, and statistics that each worker keeps.
Replicas two() {
  return Replicas({0, 1},
                  {{"parameters", BlockKind::Parameters, MergeRule::Average, 2},
                   {"own", BlockKind::Statistics, MergeRule::Keep, 2}},
                  [](int, std::size_t, std::int64_t) { return 0.0; });
}

const std::vector<Placement> kTwoOnCpu(2, {.device = Device::cpu()});

}  // namespace

TEST_CASE("workers on the CPU of one node have a HostExchange, workers on devices a DeviceExchange") {
  const auto replicas = two();
  const ExchangeChoice onCpu(kTwoOnCpu, {}, nullptr, 1);
  CHECK(onCpu.describe().empty());
  CHECK_FALSE(onCpu.mirrored());
  CHECK(dynamic_cast<HostExchange*>(onCpu.make(replicas.states, {}).get()) != nullptr);

  const ExchangeChoice onDevices(kTwoOnCpu, {}, nullptr, 1, {.pretendedDevices = 2});
  CHECK_FALSE(onDevices.describe().empty());
  CHECK_FALSE(onDevices.mirrored());
  CHECK(dynamic_cast<DeviceExchange*>(onDevices.make(replicas.states, std::vector<Tensor>(2)).get()) !=
        nullptr);
}

TEST_CASE("every worker of a training is on one node, and batch b is read by node b mod nodes") {
  const int nodes = 3, local = 2;
  for (int worker = 0; worker < nodes * local; ++worker)
    for (int node = 0; node < nodes; ++node) {
      const NodePlace place{.node = node, .nodes = nodes, .local = local};
      CHECK(place.workers() == 6);
      CHECK(place.isHere(worker) == (worker % nodes == node));
      if (place.isHere(worker)) CHECK(place.worker(place.localOf(worker)) == worker);
    }
}

TEST_CASE("replicas that differ are noticed, unless they may differ or each worker keeps its own") {
  const auto replicas = two();
  const auto exchange = ExchangeChoice(kTwoOnCpu, {}, nullptr, 1).make(replicas.states, {});
  const StrategyTraits traits{.replicasDiffer = false};
  // Worker 0 of each of two nodes; this is node 0, whose exchange has both replicas here.
  const WorkerBlocks blocks(*exchange, {.node = 0, .nodes = 2, .local = 1}, traits);
  CHECK_FALSE(blocks.differUnexpectedly());
  exchange->blocks()[1].replicas[1].data<float>()[0] = 1;  // kept by each worker
  CHECK_FALSE(blocks.differUnexpectedly());
  exchange->blocks()[0].replicas[1].data<float>()[0] = 1;
  CHECK(blocks.differUnexpectedly());

  const StrategyTraits differing{.replicasDiffer = true};
  CHECK_FALSE(WorkerBlocks(*exchange, {.node = 0, .nodes = 2, .local = 1}, differing).differUnexpectedly());
}
