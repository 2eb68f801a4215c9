#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "muster/core/base/fields.h"
#include "muster/core/data/resident.h"
#include "muster/datasets/image_set_iterator.h"

namespace muster {

/// Where to store the images while a network trains on them.
enum class PlacementWish {
  Auto,   ///< on each GPU that computes if they take at most half of its free memory, else on the CPU
  Host,   ///< on the CPU: each batch is sent to the GPU
  Device  ///< all on each GPU that computes; OutOfMemory in training if they do not fit
};

template <>
struct EnumNames<PlacementWish> {
  static constexpr std::array<std::pair<PlacementWish, std::string_view>, 3> kNames{
      {{PlacementWish::Auto, "auto"}, {PlacementWish::Host, "host"}, {PlacementWish::Device, "device"}}};
};

/// A GPU on which a worker computes, and its free memory.
struct GpuMemory {
  Device device;
  std::size_t freeBytes = 0;
};

/// Where the images are, and in which form batches come.
struct ImagePlacement {
  MemoryPlacement placement = MemoryPlacement::Host;
  DType features = DType::Float32;  ///< for batches that are gathered on the CPU
  std::string why = {};             ///< the reason, for the user; "" if there is none
};

/// Chooses for images and labels of `bytes` in total. Workers on GPUs read the images as bytes, workers on
/// the CPU as floats. The choice changes no bit of a result.
/// @param gpus  those on which workers compute; none: the workers are on the CPU.
/// @param hostWhy  why the images must stay on the CPU; "" if they need not.
ImagePlacement choosePlacement(PlacementWish wish, std::span<const GpuMemory> gpus, std::size_t bytes,
                               std::string_view hostWhy = {});

/// Chooses for all images of `iterators`, and sets these accordingly.
/// @param devices  worker i computes on device i mod D of them.
/// @throws DeviceUnavailable, DeviceFailure if a GPU cannot be asked for its memory.
ImagePlacement placeImages(std::span<ImageSetIterator* const> iterators, PlacementWish wish,
                           std::span<const Device> devices, int workers, std::string_view hostWhy = {});

}  // namespace muster
