// IDX files, plain or gzip: one of images and one of labels, with the first one's length before them.
#include "muster/datasets/idx.h"

#include "muster/datasets/image_set.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/fuzz/input_file.h"

namespace muster::fuzz {
namespace {

constexpr std::size_t kLength = 2;

void readSet(const std::filesystem::path& images, const std::filesystem::path& labels) {
  std::shared_ptr<const ImageSet> set;
  try {
    set = readIdxImageSet(images, labels, 10);
  } catch (const FileError& error) {
    expectReadable(error.what());
    expect(error.path() == images || error.path() == labels, "an error names another file");
    return;
  }
  expect(set->pixels().size() == static_cast<std::size_t>(set->size() * set->imageShape().elements()),
         "the images are not the pixels");
  for (std::int64_t i = 0; i < set->size(); ++i) expect(set->label(i) < 10, "a label is out of range");
}

void run(ByteSpan bytes) {
  static FuzzedFile first, second;
  if (bytes.size() < kLength) return;
  const std::size_t length = std::min<std::size_t>(bytes[0] | bytes[1] << 8, bytes.size() - kLength);
  const auto &images = first.of(bytes.subspan(kLength, length)),
             &labels = second.of(bytes.subspan(kLength + length));
  isRead(images, [&] { readIdx(images); });
  isRead(labels, [&] { readIdx(labels); });
  readSet(images, labels);
}

Bytes joined(const std::string& images, const std::string& labels) {
  std::string all{static_cast<char>(images.size() & 0xFF), static_cast<char>(images.size() >> 8)};
  return bytesOf(all + images + labels);
}

std::vector<Bytes> seeds() {
  using test::idx;
  using test::idxHead;
  constexpr std::uint32_t kHuge = 0xFFFFFFFF;
  return {joined(idx({2, 2, 3}, std::string(12, '\x7F')), idx({2}, std::string("\1\2"))),
          joined(idx({0, kHuge, kHuge}, ""),
                 idx({0}, "")),  // found by fuzzing: images without elements, too large for a shape
          joined(idxHead(0x0E, {1, 2}) + std::string(16, '\0'), idxHead(0x0D, {2}) + std::string(8, '\0'))};
}

/// Writes hostile sizes into a header, sometimes followed by that many bytes.
void mutateHead(Bytes& file, Draw& draw) {
  if (file.size() < 4) return mutateBytes(file, draw);
  if (draw.oneIn(4)) file[3] = static_cast<std::uint8_t>(draw.below(8));
  if (draw.oneIn(6)) file[2] = static_cast<std::uint8_t>(8 + draw.below(8));
  const std::size_t rank = file[3];
  if (file.size() < 4 + 4 * rank) file.resize(4 + 4 * rank);
  const auto put = [&](std::size_t i, std::uint32_t size) {
    for (std::size_t b = 0; b < 4; ++b) file[4 + 4 * i + b] = static_cast<std::uint8_t>(size >> (24 - 8 * b));
  };
  for (std::size_t i = 0; i < rank; ++i)
    if (draw.oneIn(2)) put(i, static_cast<std::uint32_t>(draw.hostile()));
  if (rank > 0 && draw.oneIn(3)) put(draw.below(rank), 0);  // nothing, of any size
  if (rank > 0 && draw.oneIn(3)) {
    std::size_t elements = file[2] == 0x08 ? 1 : file[2] == 0x0D ? 4 : 8;
    for (std::size_t i = 0; i < rank; ++i) {
      const auto size = static_cast<std::uint32_t>(draw.below(4));
      put(i, size);
      elements *= size;
    }
    file.resize(4 + 4 * rank + std::min<std::size_t>(elements, 1 << 14));
  }
}

void mutate(Bytes& bytes, Draw& draw) {
  if (bytes.size() < kLength) return mutateBytes(bytes, draw);
  const std::size_t length = std::min<std::size_t>(bytes[0] | bytes[1] << 8, bytes.size() - kLength);
  const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(kLength + length);
  Bytes images(bytes.begin() + kLength, middle), labels(middle, bytes.end());
  mutateHead(draw.oneIn(2) ? images : labels, draw);
  bytes = joined(std::string(textOf(images)), std::string(textOf(labels)));
}

}  // namespace

const Target targets::idx{"idx", &run, &seeds, &mutate};

}  // namespace muster::fuzz
