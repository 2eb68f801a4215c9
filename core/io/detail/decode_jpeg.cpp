#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs it
#include <string>

#include <jpeglib.h>
// After jpeglib.h:
#include <jerror.h>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/decoded_picture.h"

namespace muster::detail {
namespace {

/// Pixels that one byte can hold: each block of 8 x 8 has a bit, at least.
constexpr std::uint64_t kMostPixelsPerByte = 8 * 64;

/// A file of some kilobytes can have thousands of scans, each over all pixels; a camera's has ten or so.
constexpr int kMostScans = 500;

/// Faults that a picture may have and still be whole.
bool isHarmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
         code == JWRN_TOO_MUCH_DATA;
}

/// Reads a file in memory. libjpeg ends the process on an error unless its handler jumps; so the functions
/// that call it own nothing, and say by their result whether it failed.
class JpegReader {
 public:
  explicit JpegReader(FileBytes file) : file_(file) {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = &JpegReader::fail;
    errors_.emit_message = &JpegReader::warn;
    jpeg_.client_data = this;
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  bool begin() {
    if (setjmp(jump_) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_.client_data = this;
    progress_.progress_monitor = &JpegReader::limitScans;
    jpeg_.progress = &progress_;
    jpeg_mem_src(&jpeg_, file_.data(), static_cast<unsigned long>(file_.size()));  // NOLINT: its type
    jpeg_save_markers(&jpeg_, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&jpeg_, TRUE);
    if (jpeg_.jpeg_color_space == JCS_YCCK) jpeg_.out_color_space = JCS_CMYK;
    return true;
  }
  bool start() {
    if (setjmp(jump_) != 0) return false;
    jpeg_start_decompress(&jpeg_);
    return true;
  }
  /// @param rows  [height, width, channels].
  bool read(std::uint8_t* rows) {
    if (setjmp(jump_) != 0) return false;
    const std::size_t row = std::size_t{jpeg_.output_width} * static_cast<std::size_t>(channels());
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW next = rows + jpeg_.output_scanline * row;
      jpeg_read_scanlines(&jpeg_, &next, 1);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  std::uint64_t width() const { return jpeg_.image_width; }
  std::uint64_t height() const { return jpeg_.image_height; }
  /// After `start`.
  int channels() const { return jpeg_.output_components; }

  /// Before `read`, which frees the markers.
  int orientation() const {
    constexpr std::array<std::uint8_t, 6> kExif{'E', 'x', 'i', 'f', 0, 0};
    for (auto* marker = jpeg_.marker_list; marker != nullptr; marker = marker->next) {
      const FileBytes data(marker->data, marker->data_length);
      if (data.size() > kExif.size() && std::ranges::equal(data.first(kExif.size()), kExif))
        return exifOrientation(data.subspan(kExif.size()));
    }
    return 1;
  }

  const char* message() const { return message_; }

 private:
  [[noreturn]] static void fail(j_common_ptr jpeg) {
    auto* const self = static_cast<JpegReader*>(jpeg->client_data);
    jpeg->err->format_message(jpeg, self->message_);
    std::longjmp(self->jump_, 1);
  }
  /// libjpeg only warns of missing data, and makes them grey.
  static void warn(j_common_ptr jpeg, int level) {
    if (level < 0 && !isHarmless(jpeg->err->msg_code)) fail(jpeg);
  }
  static void limitScans(j_common_ptr jpeg) {
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMostScans) return;
    auto* const self = static_cast<JpegReader*>(jpeg->client_data);
    std::snprintf(self->message_, sizeof self->message_, "it has more than %d scans", kMostScans);
    std::longjmp(self->jump_, 1);
  }

  FileBytes file_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  std::jmp_buf jump_{};
  char message_[JMSG_LENGTH_MAX] = "";
};

/// CMYK as Adobe's programs store it, 255 for no ink, to RGB.
std::vector<std::uint8_t> rgbOf(const std::vector<std::uint8_t>& cmyk) {
  std::vector<std::uint8_t> rgb;
  rgb.reserve(cmyk.size() / 4 * 3);
  for (std::size_t i = 0; i < cmyk.size(); i += 4)
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned white = cmyk[i + 3], ink = 255U - cmyk[i + c];
      rgb.push_back(static_cast<std::uint8_t>(white - scaled(ink, white)));
    }
  return rgb;
}

}  // namespace

DecodedPicture decodeJpeg(FileBytes file, const std::filesystem::path& path) {
  JpegReader jpeg(file);
  const auto fail = [&] {
    throw FileError(path, fmt::format("is not a JPEG file that can be read: {}", jpeg.message()));
  };
  if (!jpeg.begin()) fail();
  requirePixels(jpeg.width(), jpeg.height(), path);
  requireBytes(jpeg.width() * jpeg.height() / kMostPixelsPerByte, file, jpeg.width(), jpeg.height(), path);
  if (!jpeg.start()) fail();
  DecodedPicture picture{.width = static_cast<std::int64_t>(jpeg.width()),
                         .height = static_cast<std::int64_t>(jpeg.height()),
                         .channels = jpeg.channels(),
                         .orientation = jpeg.orientation()};
  picture.pixels.resize(jpeg.width() * jpeg.height() * static_cast<std::size_t>(picture.channels));
  if (!jpeg.read(picture.pixels.data())) fail();
  if (picture.channels == 4) {
    picture.pixels = rgbOf(picture.pixels);
    picture.channels = 3;
  }
  return picture;
}

}  // namespace muster::detail
