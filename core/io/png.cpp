#include "muster/core/io/png.h"

#include <png.h>

#include <span>
#include <string>

#include "muster/core/base/error.h"
#include "muster/core/io/input_file.h"

namespace muster {
namespace {

constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 26;
constexpr std::uint64_t kMostPacked = 1032;  // bytes that one byte of a deflate stream can hold

/// Frees what libpng allocates for an image.
struct Image {
  png_image it{};

  Image() { it.version = PNG_IMAGE_VERSION; }
  ~Image() { png_image_free(&it); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
};

/// Bits of a pixel in the file. @param bytes  the file, of which libpng has read the header.
std::uint64_t bitsOfPixel(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kBitDepth = 24, kColourType = 25;  // positions in every PNG file
  const std::uint64_t bits = bytes[kBitDepth];
  switch (bytes[kColourType]) {
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      return 2 * bits;
    case PNG_COLOR_TYPE_RGB:
      return 3 * bits;
    case PNG_COLOR_TYPE_RGB_ALPHA:
      return 4 * bits;
    default:
      return bits;  // grey, or an index into the palette
  }
}

/// The fewest bytes that the rows of an image have before they are packed: each begins with the number of its
/// filter. Interlacing adds bytes, because it splits rows.
std::uint64_t fewestBytes(const png_image& image, std::uint64_t pixelBits) {
  return image.height * ((image.width * pixelBits + 7) / 8 + 1);
}

}  // namespace

PngPicture readPng(const std::filesystem::path& path, PngColour colour) {
  InputFile file(path);
  std::vector<std::uint8_t> bytes(file.size());
  file.read(bytes.data(), bytes.size());
  Image owner;
  png_image& image = owner.it;
  const auto fail = [&] {
    throw FileError(path, fmt::format("is not a PNG file that can be read: {}", image.message));
  };
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) fail();
  if (std::uint64_t{image.width} * image.height > kMostPixels)
    throw FileError(path,
                    fmt::format("has {} x {} pixels, more than {}", image.width, image.height, kMostPixels));
  if (fewestBytes(image, bitsOfPixel(bytes)) > kMostPacked * bytes.size())
    throw FileError(path, fmt::format("is too short for {} x {} pixels: it has {} bytes", image.width,
                                      image.height, bytes.size()));
  image.format = colour == PngColour::Rgb ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  PngPicture picture{.width = static_cast<int>(image.width),
                     .height = static_cast<int>(image.height),
                     .pixels = std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image))};
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr) == 0) fail();
  return picture;
}

}  // namespace muster
