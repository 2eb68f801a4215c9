#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace muster {

enum class PngColour { Grey, Rgb };

/// Writes a picture of 8 bits a channel, completely or not at all.
///
/// @param pixels  [height, width] for Grey, [height, width, 3] for Rgb; row by row from the top.
/// @throws InvalidArgument if the sizes do not match; FileError naming path and cause.
void writePng(const std::filesystem::path& path, std::span<const std::uint8_t> pixels, int width, int height,
              PngColour colour = PngColour::Grey);

}  // namespace muster
