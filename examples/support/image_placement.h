#pragma once

#include <boost/program_options.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "examples/support/data_sets.h"
#include "muster/core/data/resident.h"
#include "muster/core/device/device.h"

namespace example {

/// What `--placement` says: where the images are while a program trains on them.
enum class PlacementWish { Auto, Host, Device };

/// Adds `--placement` to a description; `text` is what will have been said, by `parsePlacement`.
void describePlacement(boost::program_options::options_description& options, std::string& text);
/// @throws muster::InvalidArgument for another word.
PlacementWish parsePlacement(const std::string& text);

/// A GPU on which a worker computes, and what is free there.
struct GpuMemory {
  muster::Device device;
  std::size_t freeBytes = 0;
};

/// Where the images are, and in which form batches of them come.
struct ImagePlacement {
  muster::MemoryPlacement placement = muster::MemoryPlacement::Host;
  muster::DType features = muster::DType::Float32;  ///< of batches that are gathered on the CPU
  /// A line for the user; "" where there is nothing to tell.
  std::string notice = {};
};

/// Without a wish: floats where the workers are on the CPU; else the bytes of the images, whole on every GPU
/// where they take at most half of what is free, and otherwise sent batch by batch.
/// @param gpus     those on which workers compute; none: they are on the CPU.
/// @param bytes    of all images and labels.
/// @param hostWhy  why they have to stay on the CPU, where they have to.
ImagePlacement placeImages(PlacementWish wish, std::span<const GpuMemory> gpus, std::size_t bytes,
                           std::string_view hostWhy = {});

/// The same for a program's own images, which are told, both those to train and those to test with.
/// @param devices  worker i computes on device i mod D of them.
/// @return the line for the user, or "".
/// @throws muster::DeviceUnavailable, muster::DeviceFailure where a GPU cannot be asked for its memory.
std::string placeImages(DataSets& data, PlacementWish wish, std::span<const muster::Device> devices,
                        int workers, std::string_view hostWhy = {});

}  // namespace example
