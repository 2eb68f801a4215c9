// PNG and JPEG files: the first byte chooses the colours and the size.
#include "muster/core/io/picture.h"

#include <zlib.h>

#include "tests/fuzz/input_file.h"

namespace muster::fuzz {
namespace {

PictureOptions optionsOf(std::uint8_t bits) {
  return {.colour = (bits & 1) != 0 ? PictureColour::Grey : PictureColour::Rgb,
          .size = (bits & 2) != 0 ? Size2d{5, 3} : Size2d(0)};
}

void run(ByteSpan bytes) {
  static FuzzedFile file;
  if (bytes.empty()) return;
  const auto options = optionsOf(bytes[0]);
  const auto& path = file.of(bytes.subspan(1));
  Tensor picture;
  if (!isRead(path, [&] { picture = readPicture(path, options); })) return;
  expect(picture.dtype() == DType::UInt8 && picture.shape().rank() == 3,
         "a picture is no [C, H, W] of bytes");
  expect(picture.shape()[0] == (options.colour == PictureColour::Grey ? 1 : 3), "the channels are others");
  const std::int64_t height = picture.shape()[1], width = picture.shape()[2];
  expect(height >= 1 && width >= 1 && height * width <= std::int64_t{1} << 26, "the size is out of range");
  if (options.size != Size2d(0)) expect(height == 5 && width == 3, "the size is not the one asked for");
}

/// The pictures of readPicture's test: all kinds of both formats.
std::vector<Bytes> seeds() {
  const std::filesystem::path folder = MUSTER_FUZZ_PICTURES;
  std::vector<Bytes> inputs;
  for (const auto& name : test::namesIn(folder)) {
    if (!isPicture(name)) continue;
    const auto options = static_cast<char>(inputs.size());
    inputs.push_back(bytesOf(options + test::readFile(folder / name)));
  }
  return inputs;
}

/// A chunk of a PNG file or a segment of a JPEG file: where it begins, and where what it says begins and
/// ends.
struct Part {
  std::size_t begin, contents, end, next;
};

constexpr std::size_t kPngHead = 1 + 8;  // after the options

std::uint32_t numberAt(const Bytes& bytes, std::size_t at, std::size_t size) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < size; ++i) number = number << 8 | bytes[at + i];
  return number;
}

/// The chunks of a PNG file, or the segments of a JPEG file before the pixels.
std::vector<Part> partsOf(const Bytes& bytes, bool png) {
  std::vector<Part> parts;
  for (std::size_t at = png ? kPngHead : 3; at + 12 <= bytes.size() && (png || bytes[at] == 0xFF);) {
    const std::size_t size = png ? numberAt(bytes, at, 4) : numberAt(bytes, at + 2, 2), more = png ? 12 : 2;
    if (size > bytes.size() - at - more || (!png && size < 2)) break;
    parts.push_back({at, at + (png ? 8 : 4), at + size + (png ? 8 : 2), at + size + more});
    at = parts.back().next;
  }
  return parts;
}

/// Writes the checksum that libpng requires.
void mendChunk(Bytes& bytes, const Part& chunk) {
  const auto sum = ::crc32(0, bytes.data() + chunk.begin + 4, static_cast<uInt>(chunk.end - chunk.begin - 4));
  for (std::size_t i = 0; i < 4; ++i) bytes[chunk.end + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
}

/// Changes, repeats or drops parts, so that the decoders still find the others.
void mutate(Bytes& bytes, Draw& draw) {
  if (bytes.empty()) return;
  if (draw.oneIn(4)) bytes[0] = static_cast<std::uint8_t>(draw.below(4));
  const bool png = bytes.size() > kPngHead && bytes[1] == 0x89;
  const auto parts = partsOf(bytes, png);
  if (parts.empty()) return mutateBytes(bytes, draw);
  const Part part = draw.of(parts);
  const auto at = [&](std::size_t place) { return bytes.begin() + static_cast<std::ptrdiff_t>(place); };
  switch (draw.below(4)) {
    case 0: {
      const Bytes copy(at(part.begin), at(part.next));
      bytes.insert(at(draw.of(parts).begin), copy.begin(), copy.end());
      break;
    }
    case 1:
      bytes.erase(at(part.begin), at(part.next));
      break;
    default:
      for (std::size_t times = draw.below(4); part.contents < part.end && times-- > 0;)
        bytes[part.contents + draw.below(part.end - part.contents)] = static_cast<std::uint8_t>(
            draw.oneIn(2) ? draw.hostile() : static_cast<std::int64_t>(draw.below(8)));
      if (png) mendChunk(bytes, part);
  }
}

}  // namespace

const Target targets::picture{"picture", &run, &seeds, &mutate};

}  // namespace muster::fuzz
