#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

enum class DeviceKind { Cpu, Cuda };

/// Names a device: "cpu", "cuda:0", "cuda:1". A value; naming one that is not there is no error until it is
/// used.
class Device {
 public:
  constexpr Device() = default;  // the CPU
  static constexpr Device cpu() { return Device(); }
  static constexpr Device cuda(int index = 0) { return Device(DeviceKind::Cuda, index); }
  /// Reads "cpu", "cuda" or "cuda:N". @throws InvalidArgument for anything else, naming it.
  static Device parse(std::string_view text);

  constexpr DeviceKind kind() const { return kind_; }
  constexpr int index() const { return index_; }
  constexpr bool isCpu() const { return kind_ == DeviceKind::Cpu; }
  std::string toString() const;

  constexpr auto operator<=>(const Device&) const = default;

 private:
  constexpr Device(DeviceKind kind, int index) : kind_(kind), index_(index) {}
  DeviceKind kind_ = DeviceKind::Cpu;
  int index_ = 0;
};

/// The CPU cores this process may use, by number, from its affinity mask.
std::vector<int> availableCores();

/// How many cores' worth of time this process gets: the affinity mask's size, or the cgroup's quota where
/// that is less; at least 1.
int availableParallelism();

}  // namespace muster
