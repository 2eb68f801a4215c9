#include "muster/parallel/exchange/merge_plan.h"

#include "tests/support/thrown.h"

using namespace muster;
using muster::test::thrown;

namespace {

/// Worker i on GPU i mod `devices`.
MergePlan planOf(int workers, int devices) {
  std::vector<Device> on;
  for (int w = 0; w < workers; ++w) on.push_back(Device::cuda(w % devices));
  return {groupByDevice(on), TransportKind::Peers};
}

}  // namespace

TEST_CASE("workers of one device form a group, in the order of their first workers") {
  const auto plan = planOf(5, 2);
  REQUIRE(plan.groups().size() == 2);
  CHECK(plan.groups()[0].device == Device::cuda(0));
  CHECK(plan.groups()[0].workers == std::vector<std::size_t>{0, 2, 4});
  CHECK(plan.groups()[1].device == Device::cuda(1));
  CHECK(plan.groups()[1].workers == std::vector<std::size_t>{1, 3});
  CHECK(plan.groupOf() == std::vector<std::size_t>{0, 1, 0, 1, 0});
  const auto reversed = groupByDevice(std::vector{Device::cuda(3), Device::cuda(1), Device::cuda(3)});
  REQUIRE(reversed.size() == 2);
  CHECK(reversed[0].device == Device::cuda(3));
  CHECK(reversed[1].workers == std::vector<std::size_t>{1});
}

TEST_CASE("every group reduces its slice, receives it once from each other one, and sends it to each once") {
  for (int workers = 1; workers <= 8; ++workers)
    for (int devices = 1; devices <= 4; ++devices)
      for (const std::int64_t elements : {0, 1, 15, 16, 17, 97, 4099}) {
        INFO("workers ", workers, ", devices ", devices, ", elements ", elements);
        const auto plan = planOf(workers, devices);
        const auto groups = static_cast<std::size_t>(std::min(workers, devices));
        REQUIRE(plan.groups().size() == groups);
        REQUIRE(plan.sends().size() == groups * (groups - 1));
        std::int64_t end = 0;
        for (std::size_t g = 0; g < groups; ++g) {
          CHECK(plan.owned(g, elements).begin == end);
          end = plan.owned(g, elements).end;
        }
        CHECK(end == elements);
        std::set<std::pair<std::size_t, std::size_t>> pairs;
        for (std::size_t begin = 0; begin < plan.sends().size(); begin += groups) {
          std::set<std::size_t> senders, receivers;
          for (const auto& [from, to] : plan.sends().subspan(begin, groups)) {
            CHECK(from < groups);
            CHECK(to < groups);
            CHECK(from != to);
            CHECK(senders.insert(from).second);  // at most one send per device at a time
            CHECK(receivers.insert(to).second);
            CHECK(pairs.insert({from, to}).second);
          }
        }
      }
}

TEST_CASE("no device transfers more than in a ring") {
  for (std::int64_t devices = 2; devices <= 4; ++devices) {
    const auto plan = planOf(8, static_cast<int>(devices));
    constexpr std::int64_t kElements = 48000;
    std::vector<std::int64_t> sent(static_cast<std::size_t>(devices));
    for (const auto& [from, to] : plan.sends())
      sent[from] += plan.owned(to, kElements).length() + plan.owned(from, kElements).length();
    for (const auto elements : sent) CHECK(elements == 2 * kElements * (devices - 1) / devices);
  }
}

TEST_CASE("a plan describes its devices and transport") {
  CHECK(planOf(4, 1).describe() == "merged on cuda:0");
  CHECK(planOf(4, 2).describe() == "merged over 2 devices by peer copies");
  CHECK(MergePlan(planOf(4, 4).groups(), TransportKind::Nccl).describe() == "merged over 4 devices by NCCL");
  CHECK(MergePlan(planOf(4, 4).groups(), TransportKind::Host).describe() ==
        "merged over 4 devices by the host");
}

TEST_CASE("the transport is NCCL if it is found, else peer copies if all devices have them, else the host") {
  CHECK(bestTransport({.whyNoNccl = "", .peers = true}) == TransportKind::Nccl);
  CHECK(bestTransport({.whyNoNccl = "", .peers = false}) == TransportKind::Nccl);
  CHECK(bestTransport({.whyNoNccl = "it is not here", .peers = true}) == TransportKind::Peers);
  CHECK(bestTransport({.whyNoNccl = "it is not here", .peers = false}) == TransportKind::Host);
}

TEST_CASE("a plan that omits a worker or contains one twice is refused") {
  const auto refusal = [](std::vector<DeviceGroup> groups) {
    return thrown<InvalidArgument>([&] { MergePlan(std::move(groups), TransportKind::Host); });
  };
  CHECK(refusal({{Device::cpu(), {0, 1}}, {Device::cpu(), {1}}}) ==
        "merge plan: worker 1 is in two groups, or there are too few others");
  CHECK(refusal({{Device::cpu(), {0, 2}}}) ==
        "merge plan: worker 2 is in two groups, or there are too few others");
  CHECK(refusal({{Device::cpu(), {0}}, {Device::cpu(), {}}}) == "merge plan: group 1 has no workers");
}
