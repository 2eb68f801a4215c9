#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {
/// What a device is.
enum class DeviceKind { Cpu, Cuda };

/// A device's name: "cpu", "cuda:0", "cuda:1". A value; a device that does not exist is an error only when it
/// is used.
class Device {
 public:
  constexpr Device() = default;  // the CPU
  static constexpr Device cpu() { return Device(); }
  static constexpr Device cuda(int index = 0) { return Device(DeviceKind::Cuda, index); }
  /// Reads "cpu", "cuda" or "cuda:N". @throws InvalidArgument for anything else, naming it.
  static Device parse(std::string_view text);
  /// Reads devices separated by commas: "cuda:0,cuda:1". @throws InvalidArgument for anything else, an empty
  /// list or a repeated device, naming it.
  static std::vector<Device> parseList(std::string_view text);

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

/// Whether this build has the CUDA backend.
bool cudaBuilt();

/// The devices that this build can use on this machine: the CPU, then the GPUs by index. Without a driver
/// only the CPU, without an error.
std::vector<Device> availableDevices();

/// Why `availableDevices` has no GPU, as "this build has no CUDA (MUSTER_CUDA is OFF)"; "" if it has one.
std::string whyNoCuda();

/// The first GPU, or the CPU if there is none.
Device defaultDevice();

/// Properties of a device, for reports.
struct DeviceProperties {
  std::string name;             ///< by its maker; "cpu" for the CPU
  std::size_t memoryBytes = 0;  ///< of a GPU; 0 for the CPU
  int multiprocessors = 0;      ///< of a GPU; 0 for the CPU
  int major = 0, minor = 0;     ///< a GPU's compute capability
  bool tensorFloat32 = false;   ///< has tensor cores for TF32, from compute capability 8.0 on
  int driver = 0, runtime = 0;  ///< CUDA versions, as 13000 for 13.0
};
/// @throws DeviceUnavailable naming the device if it is not available here.
DeviceProperties propertiesOf(Device device);

/// Free bytes of a GPU, after all programs' use; 0 for the CPU.
/// @throws DeviceUnavailable naming the device if it is not available here, DeviceFailure.
std::size_t freeMemoryOf(Device device);

/// The numbers of the CPU cores in the process's affinity mask.
std::vector<int> availableCores();

/// CPU time of this process in cores: the size of the affinity mask, or the cgroup's quota if that is less;
/// at least 1.
int availableParallelism();

}  // namespace muster
