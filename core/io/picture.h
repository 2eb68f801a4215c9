#pragma once

#include <cstdint>
#include <filesystem>

#include "muster/core/base/size2d.h"
#include "muster/core/tensor/tensor.h"

namespace muster {

/// The channels of a picture: one, or red, green and blue.
enum class PictureColour { Grey, Rgb };

/// How a picture becomes a network's input.
struct PictureOptions {
  PictureColour colour = PictureColour::Rgb;
  /// The picture is stretched to this height and width, by `resizePicture`; one number is both, 0 its own.
  Size2d size = 0;
};

/// Whether the name ends in .png, .jpg or .jpeg, in any case.
bool isPicture(const std::filesystem::path& path);

/// Reads a PNG or JPEG file, whichever its first bytes are, upright as its EXIF orientation says.
///
/// Values are the file's own: 16 bits become the nearest of 8 (v / 257), gAMA and colour profiles are not
/// applied. Transparency is laid over black: v * alpha / 255. Grey is (19595 R + 38470 G + 7471 B) / 65536
/// (ITU-R BT.601). CMYK becomes RGB as in Pillow. All are rounded, and equal Pillow's.
///
/// @return uint8 [C, H, W], as networks read pictures (byte / 255): with `prepend(1)` a batch of one.
/// @throws FileError for a file that is empty, not a whole picture, or of more than 2^26 pixels;
///         InvalidArgument for a size with one dimension below 1. Thread-safe.
Tensor readPicture(const std::filesystem::path& path, const PictureOptions& options = {});

/// Brings a picture uint8 [C, H, W] to another height and width by a triangle filter, widened by the scale
/// where the picture shrinks, so that no detail aliases (Pillow's BILINEAR). First along rows, then along
/// columns, each rounded to bytes, in integers: the same bits on every machine. @throws InvalidArgument.
Tensor resizePicture(const Tensor& picture, Size2d size);

}  // namespace muster
