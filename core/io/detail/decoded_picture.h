#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace muster::detail {

/// A picture as a decoder gives it.
struct DecodedPicture {
  std::int64_t width = 0, height = 0;
  int channels = 0;                       ///< 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  std::vector<std::uint8_t> pixels = {};  ///< [height, width, channels]
  int orientation = 1;                    ///< of EXIF: 1 upright, to 8
};

using FileBytes = std::span<const std::uint8_t>;

/// The decoders. @param path  for messages. @throws FileError.
DecodedPicture decodePng(FileBytes file, const std::filesystem::path& path);
DecodedPicture decodeJpeg(FileBytes file, const std::filesystem::path& path);

/// Refuses a picture of too many pixels, before they are allocated. @throws FileError.
void requirePixels(std::uint64_t width, std::uint64_t height, const std::filesystem::path& path);
/// Refuses a file that is shorter than the fewest bytes that so many pixels can be packed into.
/// @throws FileError.
void requireBytes(std::uint64_t fewest, FileBytes file, std::uint64_t width, std::uint64_t height,
                  const std::filesystem::path& path);

/// The orientation, 1 to 8, in EXIF data that begin with the TIFF header; 1 if they have none or are broken.
int exifOrientation(FileBytes tiff);

/// a * b / 255, rounded, for bytes.
constexpr std::uint8_t scaled(unsigned a, unsigned b) {
  return static_cast<std::uint8_t>((a * b + 127) / 255);
}

}  // namespace muster::detail
