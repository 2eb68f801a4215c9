#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace muster {

/// The channels of an image.
enum class PngColour { Grey, Rgb };

/// An image of 8 bits a channel.
struct PngPicture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  ///< [height, width] or, for Rgb, [height, width, 3]; from the top
};

/// Reads any PNG file, converted to 8 bits and to this colour; transparency over black.
/// @throws FileError for a file that is no whole PNG, or of more than 2^26 pixels.
PngPicture readPng(const std::filesystem::path& path, PngColour colour);

}  // namespace muster
