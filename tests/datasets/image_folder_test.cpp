#include "muster/datasets/image_folder.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>

#include "muster/core/base/error.h"
#include "tests/support/child_process.h"
#include "tests/support/png.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr char kGrey = 0, kRgb = 2;  // colour types of PNG files

void draw(const std::filesystem::path& path, const Bytes& pixels, int width, int height,
          PngColour colour = PngColour::Grey) {
  std::filesystem::create_directories(path.parent_path());
  test::writePng(path, pixels, width, height, colour);
}

std::string bigEndian(std::uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xFF);
  return bytes;
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return bigEndian(static_cast<std::uint32_t>(data.size())) + body +
         bigEndian(static_cast<std::uint32_t>(sum));
}

/// A PNG file. @param form  bit depth, colour type, compression, filter, interlacing.
/// @param zeros  bytes of all rows with their filters' numbers, each 0.
std::string pngOfZeros(std::uint32_t width, std::uint32_t height, const std::string& form,
                       std::size_t zeros) {
  const Bytes rows(zeros);
  auto size = ::compressBound(zeros);
  std::string packed(size, '\0');
  REQUIRE(::compress2(reinterpret_cast<Bytef*>(packed.data()), &size, rows.data(), zeros, 9) == Z_OK);
  packed.resize(size);
  return "\x89PNG\r\n\x1A\n" + chunk("IHDR", bigEndian(width) + bigEndian(height) + form) +
         chunk("IDAT", packed) + chunk("IEND", "");
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

TEST_CASE(
    "a PNG file that is too short for the pixels that it declares is refused before they are allocated") {
  test::TemporaryDirectory directory;
  const auto path = directory / "a.png";
  const auto file = pngOfZeros(8192, 8192, {8, kRgb, 0, 0, 0}, 10);
  test::writeFile(path, file);
  CHECK(test::thrown<FileError>([&] { readPng(path, PngColour::Rgb); }) ==
        fmt::format("{}: is too short for 8192 x 8192 pixels: it has {} bytes", path.string(), file.size()));
}

TEST_CASE("PNG files that are packed as well as possible are read") {
  constexpr std::uint32_t kSide = 4096;
  test::TemporaryDirectory directory;
  const auto path = directory / "a.png";
  const auto check = [&](std::uint32_t width, std::uint32_t height, const std::string& form,
                         std::size_t zeros) {
    test::writeFile(path, pngOfZeros(width, height, form, zeros));
    const auto picture = readPng(path, PngColour::Grey);
    CHECK(picture.width == static_cast<int>(width));
    CHECK(picture.height == static_cast<int>(height));
    CHECK(std::ranges::count(picture.pixels, 0) == std::int64_t{width} * height);
  };
  check(kSide, kSide, {1, kGrey, 0, 0, 0}, kSide * (kSide / 8 + 1));
  check(1, 1000000, {1, kGrey, 0, 0, 0}, 2000000);
  check(kSide, kSide / 4, {8, kRgb, 0, 0, 0}, kSide / 4 * (3 * kSide + 1));
  std::size_t interlaced = 0;
  for (const auto& [columns, rows] : {std::pair{8, 8}, {8, 8}, {4, 8}, {4, 4}, {2, 4}, {2, 2}, {1, 2}})
    interlaced += kSide / rows * (kSide / columns / 8 + 1);
  check(kSide, kSide, {1, kGrey, 0, 0, 1}, interlaced);
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

TEST_CASE("pictures that need too much memory together are refused after the first one") {
  constexpr std::uint32_t kSide = 1024;
  test::TemporaryDirectory directory;
  const auto picture = pngOfZeros(kSide, kSide, {8, kRgb, 0, 0, 0}, kSide * (3 * kSide + 1));
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directory(directory / name);
    for (int i = 0; i < 20; ++i) test::writeFile(directory / name / fmt::format("{}.png", i), picture);
  }
  test::writeFile(directory / "b/9.png", "not a picture");  // is not read
  const auto problem = test::inChild([&] {
    test::allowMemory(std::size_t{64} << 20);
    return test::thrown<Error>([&] { readImageFolder(directory.path(), PngColour::Rgb); });
  });
  const auto expected = test::kSanitized
                            ? fmt::format("{}: is not a PNG file", (directory / "b/9.png").string())
                            : fmt::format(
                                  "readImageFolder: {}: its 40 pictures of 1024 x 1024 pixels take 125.8 MB, "
                                  "but of the ",
                                  directory.path().string());
  CHECK_MESSAGE(problem.starts_with(expected), problem);
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
