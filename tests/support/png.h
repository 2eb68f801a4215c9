#pragma once

#include "muster/core/io/picture.h"
#include "tests/support/standard.h"

namespace muster::test {

/// Writes an image of 8 bits a channel.
/// @param pixels  [height, width] or, for Rgb, [height, width, 3]; from the top
void writePng(const std::filesystem::path& path, std::span<const std::uint8_t> pixels, int width, int height,
              PictureColour colour = PictureColour::Grey);

}  // namespace muster::test
