#include "muster/core/io/picture.h"

#include <algorithm>
#include <array>
#include <string>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/decoded_picture.h"
#include "muster/core/io/input_file.h"

namespace muster {
namespace {

using detail::DecodedPicture;

constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 26;

bool startsWith(const std::vector<std::uint8_t>& bytes, std::initializer_list<std::uint8_t> begin) {
  return bytes.size() >= begin.size() && std::equal(begin.begin(), begin.end(), bytes.begin());
}

DecodedPicture decode(const std::filesystem::path& path) {
  InputFile file(path);
  if (file.size() == 0) throw FileError(path, "is empty, and no picture");
  std::vector<std::uint8_t> bytes(file.size());
  file.read(bytes.data(), bytes.size());
  if (startsWith(bytes, {0xFF, 0xD8, 0xFF})) return detail::decodeJpeg(bytes, path);
  if (startsWith(bytes, {0x89, 'P', 'N', 'G'})) return detail::decodePng(bytes, path);
  throw FileError(path, "is neither a PNG nor a JPEG file");
}

/// Red, green and blue of one pixel, over black if it is transparent.
std::array<std::uint8_t, 3> colourOf(const std::uint8_t* pixel, int channels) {
  const int colours = channels < 3 ? 1 : 3;
  std::array<std::uint8_t, 3> rgb{};
  for (int c = 0; c < 3; ++c) {
    rgb[static_cast<std::size_t>(c)] = pixel[std::min(c, colours - 1)];
    if (channels > colours)
      rgb[static_cast<std::size_t>(c)] = detail::scaled(rgb[static_cast<std::size_t>(c)], pixel[colours]);
  }
  return rgb;
}

/// Source: ITU-R BT.601, the luma of R'G'B', in 16 bits of fraction.
std::uint8_t greyOf(const std::array<std::uint8_t, 3>& rgb) {
  return static_cast<std::uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 32768U) >> 16);
}

/// Where the pixels of the upright picture are in a picture of this orientation. Source: EXIF, tag 0x0112:
/// which sides of the scene the first row and the first column are.
struct Upright {
  std::int64_t width, height;  // of the file's picture
  int orientation;

  bool turned() const { return orientation >= 5; }
  std::int64_t source(std::int64_t y, std::int64_t x) const {
    const bool upwards = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const bool leftwards = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const std::int64_t row = turned() ? x : y, column = turned() ? y : x;
    return (upwards ? height - 1 - row : row) * width + (leftwards ? width - 1 - column : column);
  }
};

/// [C, H, W], upright.
Tensor planesOf(const DecodedPicture& picture, PictureColour colour) {
  const Upright upright{picture.width, picture.height, picture.orientation};
  const auto height = upright.turned() ? picture.width : picture.height;
  const auto width = upright.turned() ? picture.height : picture.width;
  const bool grey = colour == PictureColour::Grey;
  Tensor planes = Tensor::empty({grey ? 1 : 3, height, width}, DType::UInt8);
  auto* const to = planes.data<std::uint8_t>();
  for (std::int64_t y = 0, i = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x, ++i) {
      const auto rgb =
          colourOf(picture.pixels.data() + upright.source(y, x) * picture.channels, picture.channels);
      if (grey) {
        to[i] = picture.channels < 3 ? rgb[0] : greyOf(rgb);
        continue;
      }
      for (std::int64_t c = 0; c < 3; ++c) to[c * height * width + i] = rgb[static_cast<std::size_t>(c)];
    }
  return planes;
}

}  // namespace

void detail::requirePixels(std::uint64_t width, std::uint64_t height, const std::filesystem::path& path) {
  if (width * height > kMostPixels)
    throw FileError(path, fmt::format("has {} x {} pixels, more than {}", width, height, kMostPixels));
}

void detail::requireBytes(std::uint64_t fewest, FileBytes file, std::uint64_t width, std::uint64_t height,
                          const std::filesystem::path& path) {
  if (file.size() < fewest)
    throw FileError(
        path, fmt::format("is too short for {} x {} pixels: it has {} bytes", width, height, file.size()));
}

bool isPicture(const std::filesystem::path& path) {
  auto ending = path.extension().string();
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

Tensor readPicture(const std::filesystem::path& path, const PictureOptions& options) {
  Tensor picture = planesOf(decode(path), options.colour);
  return options.size == Size2d(0) ? picture : resizePicture(picture, options.size);
}

}  // namespace muster
