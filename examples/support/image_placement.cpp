#include "examples/support/image_placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "examples/support/command_line.h"
#include "examples/support/device_option.h"
#include "examples/support/number_text.h"

namespace example {
namespace {

using muster::DType;
using muster::ImageSet;
using muster::MemoryPlacement;

/// The rest is for what the training itself needs there, which nobody knows before its first step.
constexpr std::size_t kShareOfFree = 2;

/// As in "cuda:0" or "each of cuda:0 and cuda:1".
std::string namesOf(std::span<const GpuMemory> gpus) {
  if (gpus.size() == 1) return gpus.front().device.toString();
  std::vector<muster::Device> devices;
  for (const auto& gpu : gpus) devices.push_back(gpu.device);
  return "each of " + listOf(devices);
}

/// Why a data set of so many bytes is better not on these GPUs as a whole; "" where it may be.
std::string tooLarge(std::span<const GpuMemory> gpus, std::size_t bytes) {
  const auto fullest = std::ranges::min_element(gpus, {}, &GpuMemory::freeBytes);
  if (bytes <= fullest->freeBytes / kShareOfFree) return {};
  return fmt::format("{} are more than half of the {} that are free on {}",
                     byteText(static_cast<double>(bytes)), byteText(static_cast<double>(fullest->freeBytes)),
                     fullest->device.toString());
}

/// Where the workers are, the images are, too: only whoever has a wish is told of it.
ImagePlacement placeOnCpu(PlacementWish wish) {
  if (wish == PlacementWish::Device)
    return {.placement = MemoryPlacement::Device,
            .notice = "images: on the CPU, where the workers are; batches name rows of them"};
  return {.notice = wish == PlacementWish::Auto ? "" : "images: on the CPU, where the workers are"};
}

/// What lies on a GPU of a set that is there as a whole.
std::size_t bytesOf(const ImageSet& set) {
  return set.pixels().size() + static_cast<std::size_t>(set.size()) * sizeof(std::int64_t);
}

}  // namespace

void describePlacement(boost::program_options::options_description& options, std::string& text) {
  options.add_options()(
      "placement", withDefault(text, "WHERE"),
      "where the images are: device (whole on each GPU that trains, batches gathered there), host (each "
      "batch sent from the CPU) or auto (device where they fit). It changes no result");
}

PlacementWish parsePlacement(const std::string& text) {
  if (text == "auto") return PlacementWish::Auto;
  if (text == "host") return PlacementWish::Host;
  muster::require(text == "device", "--placement must be auto, host or device, got {}", text);
  return PlacementWish::Device;
}

ImagePlacement placeImages(PlacementWish wish, std::span<const GpuMemory> gpus, std::size_t bytes,
                           std::string_view hostWhy) {
  if (gpus.empty()) return placeOnCpu(wish);
  const auto sent = [](std::string_view why) {
    return ImagePlacement{.features = DType::UInt8,
                          .notice = fmt::format("images: on the CPU, each batch sent as bytes{}{}",
                                                why.empty() ? "" : ", as ", why)};
  };
  if (wish == PlacementWish::Host || !hostWhy.empty()) return sent(hostWhy);
  const bool unasked = wish == PlacementWish::Auto;
  if (const auto why = tooLarge(gpus, bytes); unasked && !why.empty()) return sent(why);
  return {.placement = MemoryPlacement::Device,
          .features = DType::UInt8,
          .notice = fmt::format("images: whole on {}, {} of bytes and labels{}", namesOf(gpus),
                                byteText(static_cast<double>(bytes)),
                                unasked ? "; --placement host sends each batch instead" : "")};
}

std::string placeImages(DataSets& data, PlacementWish wish, std::span<const muster::Device> devices,
                        int workers, std::string_view hostWhy) {
  std::vector<GpuMemory> gpus;
  for (const auto device : devices.first(std::min(devices.size(), static_cast<std::size_t>(workers))))
    if (!device.isCpu()) gpus.push_back({device, muster::freeMemoryOf(device)});
  const auto chosen =
      placeImages(wish, gpus, bytesOf(*data.train->set()) + bytesOf(*data.test->set()), hostWhy);
  for (auto* images : {data.train.get(), data.test.get()}) {
    images->setFeatures(chosen.features);
    images->setPlacement(chosen.placement);
  }
  data.placement = chosen.placement;
  return chosen.notice;
}

}  // namespace example
