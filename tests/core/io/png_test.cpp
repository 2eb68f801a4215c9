#include "muster/core/io/png.h"

#include <doctest/doctest.h>
#include <png.h>

#include <vector>

#include "muster/core/base/error.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

namespace muster {
namespace {

struct Picture {
  std::uint32_t width = 0, height = 0;
  bool colour = false;
  std::vector<std::uint8_t> pixels;
};

Picture readPng(const std::filesystem::path& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_file(&image, path.c_str()) != 0);
  const bool colour = (image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  image.format = colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  Picture picture{image.width, image.height, colour, std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image))};
  REQUIRE(png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr) != 0);
  return picture;
}

}  // namespace

TEST_CASE("grey and coloured pictures are written and read back") {
  test::TemporaryDirectory directory;
  const std::vector<std::uint8_t> grey{0, 1, 127, 128, 254, 255};
  writePng(directory / "grey.png", grey, 3, 2);
  const Picture first = readPng(directory / "grey.png");
  CHECK(first.width == 3);
  CHECK(first.height == 2);
  CHECK_FALSE(first.colour);
  CHECK(first.pixels == grey);

  const std::vector<std::uint8_t> rgb{255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 8, 7};
  writePng(directory / "rgb.png", rgb, 1, 4, PngColour::Rgb);
  const Picture second = readPng(directory / "rgb.png");
  CHECK(second.width == 1);
  CHECK(second.height == 4);
  CHECK(second.colour);
  CHECK(second.pixels == rgb);
  CHECK(directory.names() == std::set<std::string>{"grey.png", "rgb.png"});
}

TEST_CASE("writePng refuses sizes that do not fit and paths that cannot be written") {
  test::TemporaryDirectory directory;
  const std::vector<std::uint8_t> six(6);
  CHECK(test::thrown<InvalidArgument>([&] { writePng(directory / "a.png", six, 2, 2); }) ==
        "png: 2 x 2 pixels of 1 channels are 4 bytes, got 6");
  CHECK(test::thrown<InvalidArgument>([&] { writePng(directory / "a.png", six, 0, 6); }) ==
        "png: a picture cannot be 0 x 6 pixels");
  CHECK_THROWS_AS(writePng(directory / "missing/a.png", six, 3, 2), FileError);
  CHECK(directory.names().empty());
}

}  // namespace muster
