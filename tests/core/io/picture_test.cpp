#include "muster/core/io/picture.h"

#include <sstream>

#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/png.h"
#include "tests/support/raw_png.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

const std::filesystem::path kPictures = MUSTER_TEST_PICTURES;  // make.py has written them

constexpr char kGrey = 0, kRgb = 2;  // colour types of PNG files

Bytes bytesOf(const Tensor& picture) {
  const auto all = picture.span<std::uint8_t>();
  return {all.begin(), all.end()};
}

/// The error of reading a file of these bytes, without its path.
std::string problemWith(const std::string& bytes) {
  const TemporaryDirectory directory;
  const auto path = directory / "a.png";
  writeFile(path, bytes);
  const auto text = thrown<FileError>([&] { readPicture(path); });
  const auto prefix = path.string() + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

TEST_CASE("pictures of every form are read as Pillow reads them") {
  const auto lines = linesOf(readFile(kPictures / "expected.txt"));
  CHECK(lines.size() == 63);
  for (const auto& line : lines) {
    std::istringstream words(line);
    std::string name, mode, hex;
    std::int64_t height = 0, width = 0;
    words >> name >> mode >> height >> width >> hex;
    CAPTURE(line.substr(0, 40));
    const auto colour = mode == "L" ? PictureColour::Grey : PictureColour::Rgb;
    const Tensor own = readPicture(kPictures / name, {.colour = colour});
    const bool resized = own.shape()[1] != height || own.shape()[2] != width;
    const Tensor picture =
        resized ? readPicture(kPictures / name, {.colour = colour, .size = {height, width}}) : own;
    REQUIRE(picture.shape() == Shape{mode == "L" ? 1 : 3, height, width});
    // Versions of libjpeg round differently.
    const int tolerance = resized || name.ends_with("jpg") ? 1 : 0;
    const auto got = bytesOf(picture);
    REQUIRE(hex.size() == 2 * got.size());
    int worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::abs(got[i] - std::stoi(hex.substr(2 * i, 2), nullptr, 16)));
    CHECK(worst <= tolerance);
  }
}

TEST_CASE("the values of a picture do not depend on its bits and its gamma") {
  // Each value of 8 bits as v * 257 in 16 bits; between two of them the nearer one.
  Bytes rows{0};
  for (int v = 0; v < 256; ++v) rows.insert(rows.end(), 2, static_cast<std::uint8_t>(v));
  for (const int v : {128 * 257 + 128, 128 * 257 + 129, 128 * 257 - 128})
    rows.insert(rows.end(), {static_cast<std::uint8_t>(v >> 8), static_cast<std::uint8_t>(v)});
  const TemporaryDirectory directory;
  writeFile(directory / "a.png", pngOf(259, 1, {16, kGrey, 0, 0, 0}, rows));
  const auto values = bytesOf(readPicture(directory / "a.png", {.colour = PictureColour::Grey}));
  for (std::size_t v = 0; v < 256; ++v) CHECK(values[v] == v);
  CHECK(Bytes(values.begin() + 256, values.end()) == Bytes{128, 129, 128});
  CHECK(bytesOf(readPicture(kPictures / "gamma.png")) == bytesOf(readPicture(kPictures / "rgb.png")));
  CHECK(bytesOf(readPicture(kPictures / "rgb16.png")) == bytesOf(readPicture(kPictures / "rgb.png")));
}

TEST_CASE("red is 76 in grey, and half transparent red is half as bright") {
  const auto grey = [](const char* name) {
    return readPicture(kPictures / name, {.colour = PictureColour::Grey}).data<std::uint8_t>()[0];
  };
  CHECK(grey("rgb.png") == 76);   // its first pixel is red
  CHECK(grey("rgba.png") == 38);  // its alpha is 128
  CHECK(readPicture(kPictures / "rgba.png").data<std::uint8_t>()[0] == 128);
}

TEST_CASE("a picture is [C, H, W], and a network refuses one of another shape with as many elements") {
  const TemporaryDirectory directory;
  const auto path = directory / "a.png";
  writePng(path, Bytes{255, 0, 1, 0, 254, 2, 3, 4, 253, 7, 8, 9}, 2, 2, PictureColour::Rgb);
  const Tensor picture = readPicture(path);
  CHECK(picture.shape() == Shape{3, 2, 2});
  CHECK(bytesOf(picture) == Bytes{255, 0, 3, 7, 0, 254, 4, 8, 1, 2, 253, 9});
  MultiLayerNetwork network({.inputShape = {3, 2, 2}, .layers = {Dense{.units = 2}}});
  network.init();
  CHECK(network.output(picture.reshape({1, 3, 2, 2})).shape() == Shape{1, 2});
  for (const Shape& shape : {Shape{1, 2, 2, 3}, Shape{1, 12}, Shape{3, 2, 2}})
    CHECK_THROWS_AS(network.output(picture.reshape(shape)), InvalidArgument);
}

// Changed bytes are the fuzzers' subject: tests/fuzz/picture_fuzz.cpp.
TEST_CASE("files that are no whole pictures are refused, each with its reason") {
  CHECK(problemWith("") == "is empty, and no picture");
  CHECK(problemWith("GIF89a") == "is neither a PNG nor a JPEG file");
  CHECK(
      problemWith("\x89PNG\r\n\x1A\n").starts_with("is not a PNG file that can be read: it ends too early"));
  for (const char* name :
       {"rgb.png", "interlaced.png", "rgb.jpg", "progressive.jpg", "grey.jpg", "cmyk.jpg"}) {
    CAPTURE(name);
    const auto whole = readFile(kPictures / name);
    const std::string kind = std::string(name).ends_with("png") ? "PNG" : "JPEG";
    // Without the last tenth: at least the end of the picture's data.
    for (const std::size_t length : {whole.size() * 9 / 10, whole.size() / 2, std::size_t{30}}) {
      const auto problem = problemWith(whole.substr(0, length));
      CHECK_MESSAGE(problem.starts_with("is not a " + kind + " file that can be read: "), problem);
    }
  }
  auto damaged = readFile(kPictures / "rgb.png");
  damaged[damaged.size() / 2] ^= 1;
  CHECK(problemWith(damaged).starts_with("is not a PNG file that can be read: "));
}

TEST_CASE("too many pixels are refused before they are allocated") {
  const auto file = pngOfZeros(8192, 8192, {8, kRgb, 0, 0, 0}, 10);
  CHECK(problemWith(file) ==
        fmt::format("is too short for 8192 x 8192 pixels: it has {} bytes", file.size()));
  CHECK(problemWith(pngOfZeros(9000, 9000, {8, kRgb, 0, 0, 0}, 10)) ==
        "has 9000 x 9000 pixels, more than 67108864");
  auto jpeg = readFile(kPictures / "rgb.jpg");
  const auto frame = jpeg.find("\xFF\xC0");  // then 2 bytes of length, 1 of bits, height and width
  REQUIRE(frame != jpeg.npos);
  jpeg.replace(frame + 5, 4, "\xFF\xDC\xFF\xDC");
  CHECK(problemWith(jpeg) == "has 65500 x 65500 pixels, more than 67108864");
  jpeg.replace(frame + 5, 4, std::string("\x20\0\x20\0", 4));
  CHECK(problemWith(jpeg) ==
        fmt::format("is too short for 8192 x 8192 pixels: it has {} bytes", jpeg.size()));
}

TEST_CASE("a JPEG file of endlessly many scans is refused") {
  auto jpeg = readFile(kPictures / "progressive.jpg");
  const auto begin = jpeg.find("\xFF\xDA"), end = jpeg.find("\xFF\xC4", begin);  // the first scan, of means
  REQUIRE(end != jpeg.npos);
  const auto header = static_cast<std::size_t>(static_cast<unsigned char>(jpeg[begin + 3]));
  jpeg[begin + 2 + header - 1] = 0;  // with all bits, so that it may be repeated
  const auto scan = jpeg.substr(begin, end - begin);
  for (int i = 0; i < 600; ++i) jpeg.insert(begin, scan);
  CHECK(problemWith(jpeg) == "is not a JPEG file that can be read: it has more than 500 scans");
}

TEST_CASE("PNG files that are packed as well as possible are read") {
  constexpr std::uint32_t kSide = 4096;
  const TemporaryDirectory directory;
  const auto path = directory / "a.png";
  const auto check = [&](std::uint32_t width, std::uint32_t height, const std::string& form,
                         std::size_t zeros) {
    writeFile(path, pngOfZeros(width, height, form, zeros));
    const auto picture = readPicture(path, {.colour = PictureColour::Grey});
    CHECK(picture.shape() == Shape{1, height, width});
    CHECK(std::ranges::count(picture.span<std::uint8_t>(), 0) == std::int64_t{width} * height);
  };
  check(kSide, kSide, {1, kGrey, 0, 0, 0}, kSide * (kSide / 8 + 1));
  check(1, 1000000, {1, kGrey, 0, 0, 0}, 2000000);
  check(kSide, kSide / 4, {8, kRgb, 0, 0, 0}, kSide / 4 * (3 * kSide + 1));
  std::size_t interlaced = 0;
  for (const auto& [columns, rows] : {std::pair{8, 8}, {8, 8}, {4, 8}, {4, 4}, {2, 4}, {2, 2}, {1, 2}})
    interlaced += kSide / rows * (kSide / columns / 8 + 1);
  check(kSide, kSide, {1, kGrey, 0, 0, 1}, interlaced);
}

TEST_CASE("a picture is resized by the mean of what it covers") {
  Tensor picture = Tensor::empty({1, 2, 4}, DType::UInt8);
  std::ranges::copy(Bytes{0, 100, 200, 40, 20, 60, 80, 120}, picture.data<std::uint8_t>());
  // Half as wide, so triangles of 4 pixels about 1 and 3: weights 1/4, 3/4, 3/4, (1/4 outside) of the pixels;
  // row 0: (0*.75 + 100*.75 + 200*.25) / 1.75 = 71.4; (100*.25 + 200*.75 + 40*.75) / 1.75 = 117.1;
  // row 1: (20*.75 + 60*.75 + 80*.25) / 1.75 = 45.7; (60*.25 + 80*.75 + 120*.75) / 1.75 = 94.3
  CHECK(bytesOf(resizePicture(picture, {2, 2})) == Bytes{71, 117, 46, 94});
  CHECK(bytesOf(resizePicture(picture, {2, 4})) == bytesOf(picture));
  CHECK(readPicture(kPictures / "rgb.png", {.size = 5}).shape() == Shape{3, 5, 5});
  CHECK_THROWS_AS(resizePicture(picture, {0, 4}), InvalidArgument);
  CHECK_THROWS_AS(resizePicture(Tensor::zeros({1, 2, 4}), {1, 1}), InvalidArgument);
  CHECK_THROWS_AS(readPicture(kPictures / "rgb.png", {.size = {5, 0}}), InvalidArgument);
}

TEST_CASE("pictures are known by their ending, in any case") {
  for (const char* name : {"a.png", "a.Png", "a.JPG", "a.jpeg", "b/c.JpEg"}) CHECK(isPicture(name));
  for (const char* name : {"a.gif", "png", "a.png.txt", ".png", ""}) CHECK_FALSE(isPicture(name));
}

}  // namespace
}  // namespace muster::test
