#include "muster/core/io/png.h"

#include <png.h>

#include <string>

#include "muster/core/base/error.h"
#include "muster/core/io/input_file.h"

namespace muster {
namespace {

constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 26;

}  // namespace

PngPicture readPng(const std::filesystem::path& path, PngColour colour) {
  InputFile file(path);
  std::vector<std::uint8_t> bytes(file.size());
  file.read(bytes.data(), bytes.size());
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto fail = [&] {
    const std::string problem = image.message;
    png_image_free(&image);
    throw FileError(path, "is not a PNG file that can be read: " + problem);
  };
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) fail();
  if (std::uint64_t{image.width} * image.height > kMostPixels) {
    png_image_free(&image);
    throw FileError(path,
                    fmt::format("has {} x {} pixels, more than {}", image.width, image.height, kMostPixels));
  }
  image.format = colour == PngColour::Rgb ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  PngPicture picture{.width = static_cast<int>(image.width),
                     .height = static_cast<int>(image.height),
                     .pixels = std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image))};
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr) == 0) fail();
  return picture;
}

}  // namespace muster
