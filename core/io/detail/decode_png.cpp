#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/decoded_picture.h"

namespace muster::detail {
namespace {

constexpr std::uint64_t kMostInflated = 1032;  // bytes that one byte of a deflate stream can hold

/// Reads a file in memory. libpng jumps out of its functions when it fails, so the functions that call it own
/// nothing, and say by their result whether it failed.
class PngReader {
 public:
  explicit PngReader(FileBytes file) : left_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &PngReader::fail, [](png_structp, auto) {});
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ != nullptr) png_set_read_fn(png_, this, &PngReader::give);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  /// Reads up to the pixels, and chooses 8 bits a channel, without palettes.
  bool begin() {
    if (info_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // requirePixels limits them
    png_read_info(png_, info_);
    packedBits_ = std::uint64_t{png_get_bit_depth(png_, info_)} * png_get_channels(png_, info_);
    png_set_expand(png_);  // palettes, transparent colours, fewer than 8 bits
    png_set_scale_16(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  /// @param rows  one pointer a row.
  bool read(std::uint8_t** rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, info_);
    return true;
  }

  std::uint64_t width() const { return png_get_image_width(png_, info_); }
  std::uint64_t height() const { return png_get_image_height(png_, info_); }
  int channels() const { return png_get_channels(png_, info_); }
  /// The fewest bytes of the rows before they are packed: each begins with the number of its filter.
  /// Interlacing adds bytes, because it splits rows.
  std::uint64_t fewestBytes() const { return height() * ((width() * packedBits_ + 7) / 8 + 1); }

  int orientation() const {
    png_uint_32 size = 0;
    png_bytep exif = nullptr;
    if (png_get_eXIf_1(png_, info_, &size, &exif) == 0 || exif == nullptr) return 1;
    return exifOrientation({exif, size});
  }

  const char* message() const { return message_; }

 private:
  [[noreturn]] static void fail(png_structp png, png_const_charp text) {
    auto* const self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self->message_, text, sizeof self->message_ - 1);
    png_longjmp(png, 1);
  }

  static void give(png_structp png, png_bytep target, std::size_t bytes) {
    auto& left = static_cast<PngReader*>(png_get_io_ptr(png))->left_;
    if (bytes > left.size()) png_error(png, "it ends too early");
    std::copy_n(left.begin(), bytes, target);
    left = left.subspan(bytes);
  }

  FileBytes left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::uint64_t packedBits_ = 0;
  int passes_ = 1;
  char message_[128] = "memory has run out";
};

}  // namespace

DecodedPicture decodePng(FileBytes file, const std::filesystem::path& path) {
  PngReader png(file);
  const auto fail = [&] {
    throw FileError(path, fmt::format("is not a PNG file that can be read: {}", png.message()));
  };
  if (!png.begin()) fail();
  requirePixels(png.width(), png.height(), path);
  requireBytes(png.fewestBytes() / kMostInflated, file, png.width(), png.height(), path);
  DecodedPicture picture{.width = static_cast<std::int64_t>(png.width()),
                         .height = static_cast<std::int64_t>(png.height()),
                         .channels = png.channels()};
  const std::size_t row = png.width() * static_cast<std::size_t>(picture.channels);
  picture.pixels.resize(row * png.height());
  std::vector<std::uint8_t*> rows;
  for (std::size_t y = 0; y < png.height(); ++y) rows.push_back(picture.pixels.data() + y * row);
  if (!png.read(rows.data())) fail();
  picture.orientation = png.orientation();
  return picture;
}

}  // namespace muster::detail
