#pragma once

#include <cstdint>
#include <filesystem>

#include "muster/core/tensor/tensor.h"

namespace muster {

/// The channels of a picture: one, or red, green and blue.
enum class PictureColour { Grey, Rgb };

/// In pixels.
struct PictureSize {
  std::int64_t height = 0, width = 0;
  bool operator==(const PictureSize&) const = default;
};

/// How a picture becomes a network's input.
struct PictureOptions {
  PictureColour colour = PictureColour::Rgb;
  /// The picture is stretched to this size, by `resizePicture`; {0, 0}: it keeps its own.
  PictureSize size = {};
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

/// Brings a picture uint8 [C, H, W] to another size by a triangle filter, widened by the scale where the
/// picture shrinks, so that no detail aliases (Pillow's BILINEAR). First along rows, then along columns, each
/// rounded to bytes, in integers: the same bits on every machine. @throws InvalidArgument.
Tensor resizePicture(const Tensor& picture, const PictureSize& size);

}  // namespace muster
