#include "muster/datasets/image_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "muster/core/base/byte_text.h"
#include "muster/core/device/choose_device.h"

namespace muster {
namespace {

/// Images may take 1 / kShareOfFree of the free memory. The training needs the rest; how much it needs is
/// unknown before its first step.
constexpr std::size_t kShareOfFree = 2;

std::string text(std::size_t bytes) {
  return byteText(static_cast<double>(bytes));
}

/// As in "cuda:0" or "each of cuda:0 and cuda:1".
std::string placesOf(std::span<const GpuMemory> gpus) {
  std::vector<Device> devices;
  for (const auto& gpu : gpus) devices.push_back(gpu.device);
  return (gpus.size() > 1 ? "each of " : "") + namesOf(devices);
}

/// Why a data set of `bytes` bytes should not be on these GPUs as a whole; "" if it may be.
std::string tooLarge(std::span<const GpuMemory> gpus, std::size_t bytes) {
  const auto fullest = std::ranges::min_element(gpus, {}, &GpuMemory::freeBytes);
  if (bytes <= fullest->freeBytes / kShareOfFree) return {};
  return fmt::format("{} are more than half of the {} that are free on {}", text(bytes),
                     text(fullest->freeBytes), fullest->device.toString());
}

ImagePlacement placeOnCpu(PlacementWish wish) {
  constexpr const char* kThere = "images: on the CPU, where the workers are";
  if (wish == PlacementWish::Auto) return {};
  if (wish == PlacementWish::Host) return {.why = kThere};
  return {.placement = MemoryPlacement::Device, .why = fmt::format("{}; batches name rows of them", kThere)};
}

/// The bytes of a set that is on a GPU as a whole.
std::size_t bytesOf(const ImageSet& set) {
  return set.pixels().size() + static_cast<std::size_t>(set.size()) * sizeof(std::int64_t);
}

}  // namespace

ImagePlacement choosePlacement(PlacementWish wish, std::span<const GpuMemory> gpus, std::size_t bytes,
                               std::string_view hostWhy) {
  if (gpus.empty()) return placeOnCpu(wish);
  std::string why(hostWhy);
  if (why.empty() && wish == PlacementWish::Auto) why = tooLarge(gpus, bytes);
  if (wish == PlacementWish::Host || !why.empty())
    return {.features = DType::UInt8,
            .why = fmt::format("images: on the CPU, each batch sent as bytes{}{}", why.empty() ? "" : ", as ",
                               why)};
  return {.placement = MemoryPlacement::Device,
          .features = DType::UInt8,
          .why = fmt::format("images: whole on {}, {} of bytes and labels", placesOf(gpus), text(bytes))};
}

ImagePlacement placeImages(std::span<ImageSetIterator* const> iterators, PlacementWish wish,
                           std::span<const Device> devices, int workers, std::string_view hostWhy) {
  std::vector<GpuMemory> gpus;
  for (const auto device : devices.first(std::min(devices.size(), static_cast<std::size_t>(workers))))
    if (!device.isCpu()) gpus.push_back({device, freeMemoryOf(device)});
  std::size_t bytes = 0;
  for (const auto* images : iterators) bytes += bytesOf(*images->set());
  auto chosen = choosePlacement(wish, gpus, bytes, hostWhy);
  for (auto* images : iterators) {
    images->setFeatures(chosen.features);
    images->setPlacement(chosen.placement);
  }
  return chosen;
}

}  // namespace muster
