#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "muster/core/device/device.h"

// Functions of the CUDA backend for `device/` and `tensor/`; defined in builds with CUDA.

namespace muster {

class Context;
struct ContextOptions;
enum class Stream;
namespace detail {
struct BackendState;
class BackendEvent;
class BackendGraph;
}  // namespace detail

namespace cuda {

struct DeviceCount {
  int count = 0;
  std::string whyNone;  // "" if there is a device
};
/// Never throws: a machine without a driver has no devices.
DeviceCount deviceCount();
DeviceProperties propertiesOf(Device device);
std::size_t freeMemoryOf(Device device);

/// Memory of a device, aligned to 256 bytes; `bytes` at least 1. @throws OutOfMemory, DeviceUnavailable.
std::byte* allocate(std::size_t bytes, Device device);
/// Waits for the device's work. Failures are logged.
void release(std::byte* data, Device device) noexcept;

/// Pinned host memory that every GPU copies to and from. @throws OutOfMemory.
std::byte* allocatePinned(std::size_t bytes);
void releasePinned(std::byte* data) noexcept;

/// An address, and the device of its memory.
struct Place {
  std::byte* data;
  Device device;
};
/// Enqueues a copy on `stream` of the context. Source or target is on a GPU.
void copyBytes(Place source, Place target, std::size_t bytes, Context& context, Stream stream);
/// As above, on a stream of the calling thread; done on return.
void copyBytes(Place source, Place target, std::size_t bytes);
void zeroBytes(Place target, std::size_t bytes, Context& context);
void zeroBytes(Place target, std::size_t bytes);

std::unique_ptr<detail::BackendState> makeState(Device device, const ContextOptions& options);
std::unique_ptr<detail::BackendEvent> makeEvent(Device device);
std::unique_ptr<detail::BackendGraph> makeGraph(Context& context);

}  // namespace cuda
}  // namespace muster
