#include "tests/support/png.h"

#include <png.h>

#include "muster/core/base/error.h"

void muster::test::writePng(const std::filesystem::path& path, std::span<const std::uint8_t> pixels,
                            int width, int height, PictureColour colour) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = colour == PictureColour::Rgb ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  require(pixels.size() == PNG_IMAGE_SIZE(image), "{}: {} bytes are no {} x {} pixels", path.string(),
          pixels.size(), width, height);
  require(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr) != 0, "{}: {}",
          path.string(), image.message);
}
