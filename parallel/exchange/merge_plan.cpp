#include "muster/parallel/exchange/merge_plan.h"

#include <algorithm>

namespace muster {

std::vector<DeviceGroup> groupByDevice(std::span<const Device> devices) {
  std::vector<DeviceGroup> groups;
  for (std::size_t w = 0; w < devices.size(); ++w) {
    auto group = std::ranges::find(groups, devices[w], &DeviceGroup::device);
    if (group == groups.end()) group = groups.insert(groups.end(), {devices[w], {}});
    group->workers.push_back(w);
  }
  return groups;
}

MergePlan::MergePlan(std::vector<DeviceGroup> groups, TransportKind kind)
    : groups_(std::move(groups)), transport_(kind) {
  const std::size_t count = groups_.size();
  std::size_t workers = 0;
  for (const auto& group : groups_) workers += group.workers.size();
  groupOf_.assign(workers, count);
  for (std::size_t g = 0; g < count; ++g) {
    require(!groups_[g].workers.empty(), "merge plan: group {} has no workers", g);
    for (const std::size_t w : groups_[g].workers) {
      require(w < workers && groupOf_[w] == count,
              "merge plan: worker {} is in two groups, or there are too few others", w);
      groupOf_[w] = g;
    }
  }
  for (std::size_t shift = 1; shift < count; ++shift)
    for (std::size_t from = 0; from < count; ++from) sends_.push_back({from, (from + shift) % count});
}

std::string MergePlan::describe() const {
  if (groups_.size() == 1) return fmt::format("merged on {}", groups_.front().device.toString());
  return fmt::format("merged over {} devices by {}", groups_.size(), nameOf(transport_));
}

}  // namespace muster
