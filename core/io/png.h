#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace muster {

/// The channels of an image.
enum class PngColour { Grey, Rgb };

/// Writes an image of 8 bits a channel, completely or not at all.
///
/// @param pixels  [height, width] for Grey, [height, width, 3] for Rgb; row by row from the top.
/// @throws InvalidArgument if the sizes do not match; FileError naming path and cause.
void writePng(const std::filesystem::path& path, std::span<const std::uint8_t> pixels, int width, int height,
              PngColour colour = PngColour::Grey);

/// An image of 8 bits a channel.
struct PngPicture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  ///< as for writePng
};

/// Reads any PNG file, converted to 8 bits and to this colour; transparency over black.
/// @throws FileError for a file that is no whole PNG, or of more than 2^26 pixels.
PngPicture readPng(const std::filesystem::path& path, PngColour colour);

}  // namespace muster
