#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "muster/core/io/png.h"

namespace muster::test {

/// Writes an image of 8 bits a channel.
/// @param pixels  as in PngPicture.
void writePng(const std::filesystem::path& path, std::span<const std::uint8_t> pixels, int width, int height,
              PngColour colour = PngColour::Grey);

}  // namespace muster::test
