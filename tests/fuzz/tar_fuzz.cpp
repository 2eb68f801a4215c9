// tar archives: found entries are inside the archive.
#include "muster/datasets/tar.h"

#include <fmt/format.h>

#include "tests/datasets/tar_bytes.h"
#include "tests/fuzz/input_file.h"

namespace muster::fuzz {
namespace {

constexpr std::size_t kBlock = 512, kSize = 124, kSum = 148;

void run(ByteSpan bytes) {
  static const std::filesystem::path path = "archive.tar";
  std::vector<TarEntry> entries;
  if (!isRead(path, [&] { entries = readTar(bytes, path); })) return;
  expect(entries.size() * kBlock <= bytes.size(), "more files than headers");
  for (const auto& entry : entries) {
    expect(entry.bytes.empty() || (entry.bytes.data() >= bytes.data() &&
                                   entry.bytes.data() + entry.bytes.size() <= bytes.data() + bytes.size()),
           "a file lies outside of its archive");
    expect(entry.name.size() <= 256, "a name is longer than its fields");
  }
}

std::vector<Bytes> seeds() {
  using test::tarEnd;
  using test::tarEntry;
  return {bytesOf(tarEnd()),
          bytesOf(tarEntry("folder/", "", '5') + tarEntry("folder/a.bin", "12345") + tarEnd()),
          bytesOf(tarEntry("b", std::string(600, 'b'), '0', "a/long/prefix") + tarEntry("c", "") + tarEnd())};
}

/// Sets a header's checksum in its first form.
void settleSum(std::span<std::uint8_t> header) {
  std::fill_n(header.begin() + kSum, 8, std::uint8_t{' '});
  std::uint64_t sum = 0;
  for (const auto byte : header) sum += byte;
  const std::string field = fmt::format("{:06o}", sum) + std::string("\0 ", 2);
  std::copy(field.begin(), field.end(), header.begin() + kSum);
}

void mutate(Bytes& bytes, Draw& draw) {
  if (bytes.size() < kBlock) return mutateBytes(bytes, draw);
  const auto header = std::span(bytes).subspan(draw.below(bytes.size() / kBlock) * kBlock, kBlock);
  const auto put = [&](std::size_t at, std::string field, std::size_t width) {
    field.resize(width, draw.oneIn(2) ? '\0' : ' ');
    std::copy(field.begin(), field.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
  };
  switch (draw.below(7)) {
    case 0:
      put(kSize, fmt::format("{:o}", static_cast<std::uint64_t>(draw.hostile())), 12);
      break;
    case 1:  // GNU's form of sizes of 8 GiB and more
      put(kSize, std::string(1, '\x80').append(11, static_cast<char>(draw.bits())), 12);
      break;
    case 2:
      put(kSize, std::string(draw.below(12), ' ').append("7"), 12);
      break;
    case 3:
      put(0, std::string(100, draw.oneIn(2) ? '\x1B' : 'n'), 100);
      break;
    case 4:
      put(345, std::string(155, 'p'), 155);
      break;
    case 5:
      header[156] = static_cast<std::uint8_t>("0\0005xgLK123456"[draw.below(13)]);
      break;
    default: {
      const std::size_t at = draw.below(bytes.size() / kBlock) * kBlock;
      const Bytes block(header.begin(), header.end());
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), block.begin(), block.end());
      return;
    }
  }
  if (!draw.oneIn(8)) settleSum(header);
}

}  // namespace

const Target targets::tar{"tar", &run, &seeds, &mutate};

}  // namespace muster::fuzz
