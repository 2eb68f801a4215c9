#include "muster/datasets/image_folder.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "tests/support/png.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;

namespace {

using Bytes = std::vector<std::uint8_t>;

void draw(const std::filesystem::path& path, const Bytes& pixels, int width, int height,
          PngColour colour = PngColour::Grey) {
  std::filesystem::create_directories(path.parent_path());
  test::writePng(path, pixels, width, height, colour);
}

Bytes imageAt(const ImageFolder& folder, std::int64_t index) {
  const auto pixels = folder.images->image(index);
  return {pixels.begin(), pixels.end()};
}

}  // namespace

TEST_CASE("readPng reads what writePng wrote, and converts colours") {
  test::TemporaryDirectory directory;
  const auto path = directory / "a.png";
  const Bytes colours{255, 0, 0, 0, 255, 0, 0, 0, 255, 7, 7, 7};
  draw(path, colours, 2, 2, PngColour::Rgb);
  const auto read = readPng(path, PngColour::Rgb);
  CHECK(read.width == 2);
  CHECK(read.height == 2);
  CHECK(read.pixels == colours);
  draw(path, {1, 2, 3}, 3, 1);
  CHECK(readPng(path, PngColour::Rgb).pixels == Bytes{1, 1, 1, 2, 2, 2, 3, 3, 3});
}

TEST_CASE("pictures are read class by class, sorted by name, with separate channels") {
  test::TemporaryDirectory directory;
  draw(directory / "dogs/b.png", {1, 2, 3, 4, 5, 6}, 2, 1, PngColour::Rgb);
  draw(directory / "cats/2.png", {9, 9, 9, 8, 8, 8}, 2, 1, PngColour::Rgb);
  draw(directory / "cats/1.PNG", {5, 5}, 2, 1);
  test::writeFile(directory / "cats/readme.txt", "x");
  test::writeFile(directory / "list.txt", "x");
  std::filesystem::create_directory(directory / ".hidden");
  const auto folder = readImageFolder(directory.path(), PngColour::Rgb);
  CHECK(folder.classes == std::vector<std::string>{"cats", "dogs"});
  REQUIRE(folder.images->size() == 3);
  CHECK(folder.images->imageShape() == Shape{3, 1, 2});
  CHECK(imageAt(folder, 0) == Bytes{5, 5, 5, 5, 5, 5});
  CHECK(imageAt(folder, 2) == Bytes{1, 4, 2, 5, 3, 6});
  CHECK(folder.images->label(1) == 0);
  CHECK(folder.images->label(2) == 1);
  const auto problem = test::thrown<FileError>([&] {
    readImageFolder(directory.path(), PngColour::Rgb, {"birds", "cats"});
  });
  CHECK(problem.find("dogs: is no class; there are birds, cats") != std::string::npos);
}

TEST_CASE("folders and pictures that do not fit are refused by name") {
  test::TemporaryDirectory directory;
  const auto problem = [&] {
    return test::thrown<FileError>([&] { readImageFolder(directory.path(), PngColour::Grey); });
  };
  CHECK(problem().find("has 0 directories") != std::string::npos);
  draw(directory / "a/1.png", {1, 2}, 2, 1);
  CHECK(problem().find("has 1 directories") != std::string::npos);
  std::filesystem::create_directory(directory / "b");
  CHECK(problem().find("b: has no PNG files") != std::string::npos);
  draw(directory / "b/1.png", {1, 2}, 1, 2);
  CHECK(problem().find("1.png: has 1 x 2 pixels, and the first picture 2 x 1") != std::string::npos);
  test::writeFile(directory / "b/1.png", "not a picture");
  CHECK(problem().find("b/1.png: is not a PNG file that can be read: ") != std::string::npos);
  CHECK_THROWS_AS(readImageFolder(directory / "none", PngColour::Grey), FileError);
}
