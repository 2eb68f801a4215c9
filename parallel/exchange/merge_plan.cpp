#include "muster/parallel/exchange/merge_plan.h"

#include <algorithm>

#include "muster/core/base/error.h"

namespace muster {

std::vector<DeviceGroup> groupByDevice(std::span<const Device> devices) {
  std::vector<DeviceGroup> groups;
  for (std::size_t w = 0; w < devices.size(); ++w) {
    auto group = std::ranges::find(groups, devices[w], &DeviceGroup::device);
    if (group == groups.end()) group = groups.insert(groups.end(), {devices[w], {}});
    group->workers.push_back(static_cast<int>(w));
  }
  return groups;
}

MergePlan::MergePlan(std::vector<DeviceGroup> groups, TransportKind kind)
    : groups_(std::move(groups)), transport_(kind) {
  std::size_t workers = 0;
  for (const auto& group : groups_) workers += group.workers.size();
  groupOf_.assign(workers, -1);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    require(!groups_[g].workers.empty(), "merge plan: group {} has no workers", g);
    for (const int w : groups_[g].workers) {
      const bool known = w >= 0 && static_cast<std::size_t>(w) < workers;
      require(known && groupOf_[static_cast<std::size_t>(w)] < 0,
              "merge plan: worker {} is in two groups, or there are too few others", w);
      groupOf_[static_cast<std::size_t>(w)] = static_cast<int>(g);
    }
  }
}

void MergePlan::scatter(int round, std::int64_t elements, std::span<Send> sends) const {
  const int count = static_cast<int>(groups_.size());
  for (int from = 0; from < count; ++from) {
    const int to = (from + 1 + round) % count;
    sends[static_cast<std::size_t>(from)] = {from, to, owned(to, elements)};
  }
}

void MergePlan::gather(int round, std::int64_t elements, std::span<Send> sends) const {
  scatter(round, elements, sends);
  for (Send& send : sends) send.slice = owned(send.from, elements);
}

std::string MergePlan::describe() const {
  if (groups_.size() == 1) return fmt::format("merged on {}", groups_.front().device.toString());
  return fmt::format("merged over {} devices by {}", groups_.size(), nameOf(transport_));
}

}  // namespace muster
