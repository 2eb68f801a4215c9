#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace muster::detail {

enum class ControlGroupVersion { One, Two };

/// Calls f(directory, version) for each control group (cgroup) that limits this process: its own and the
/// group's parents. In a container a group's path may be the host's; then only the root group is found.
/// @param root  of the file system: "/" except in tests.
/// @param controller  name of the version 1 controller, such as "memory".
void forEachControlGroup(
    const std::string& root, std::string_view controller,
    const std::function<void(const std::string& directory, ControlGroupVersion version)>& f);

/// The smallest CPU quota of these groups, in cores (cpu.max or cpu.cfs_quota_us); nothing if none has one.
std::optional<double> cpuQuota(const std::string& root = "/");

}  // namespace muster::detail
