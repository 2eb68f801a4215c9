// gzip files: the unpacked bytes equal zlib's, and do not exceed the limit.
#include <zlib.h>

#include "muster/datasets/file_bytes.h"
#include "tests/datasets/gzip.h"
#include "tests/fuzz/input_file.h"

namespace muster::fuzz {
namespace {

constexpr std::size_t kMost = 1 << 15;  // small unpacked inputs, so that many inputs can run

/// All members of a gzip file, unpacked by zlib; empty if zlib rejects them or they are too long.
std::optional<std::string> unpackedByZlib(ByteSpan bytes) {
  std::string all;
  while (!bytes.empty()) {
    z_stream stream{};
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return std::nullopt;
    stream.next_in = const_cast<Bytef*>(bytes.data());
    stream.avail_in = static_cast<uInt>(bytes.size());
    std::array<char, 4096> part{};
    int result = Z_OK;
    while (result == Z_OK && all.size() <= kMost) {
      stream.next_out = reinterpret_cast<Bytef*>(part.data());
      stream.avail_out = static_cast<uInt>(part.size());
      result = inflate(&stream, Z_NO_FLUSH);
      all.append(part.data(), part.size() - stream.avail_out);
    }
    const std::size_t used = stream.total_in;
    inflateEnd(&stream);
    if (result != Z_STREAM_END) return std::nullopt;
    bytes = bytes.subspan(used);
  }
  if (all.size() > kMost) return std::nullopt;
  return all;
}

void run(ByteSpan bytes) {
  static const std::filesystem::path path = "packed.gz";
  Bytes contents;
  if (!isRead(path, [&] { contents = unpackGzip(bytes, path, kMost); })) return;
  expect(contents.size() <= kMost, "more is unpacked than was allowed");
  const auto expected = unpackedByZlib(bytes);
  if (expected) expect(textOf(contents) == *expected, "zlib unpacks it to something else");
}

std::vector<Bytes> seeds() {
  const std::string text = "the text of a file, the text of a file";
  return {bytesOf(test::gzip(text)), bytesOf(test::gzip("")),
          bytesOf(test::gzip(text) + test::gzip("another")), bytesOf(test::gzip(std::string(kMost, 'a')))};
}

/// Packs other contents, and damages the bytes around the compressed data.
void mutate(Bytes& bytes, Draw& draw) {
  auto contents = unpackedByZlib(bytes);
  if (contents && draw.oneIn(2)) {
    Bytes changed = bytesOf(*contents);
    mutateBytes(changed, draw);
    if (draw.oneIn(8)) changed.insert(changed.end(), 1 << draw.below(draw.oneIn(64) ? 17 : 11), 'x');
    bytes = bytesOf(test::gzip(std::string(textOf(changed))));
    if (bytes.size() > 1 << 14) bytes.resize(1 << 14);
  }
  constexpr std::size_t kHead = 10;
  if (bytes.size() < kHead + 8) return mutateBytes(bytes, draw);
  switch (draw.below(6)) {
    case 0:  // optional parts of the header
      bytes[3] = static_cast<std::uint8_t>(draw.below(32));
      bytes.insert(bytes.begin() + kHead, {1, 0, 'x', 'n', 0, 'c', 0});
      break;
    case 1:  // the size and the checksum that the end gives
      for (std::size_t i = bytes.size() - (draw.oneIn(2) ? 4 : 8); i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(draw.bits());
      break;
    case 2: {  // more members
      const Bytes member = bytes;
      bytes.insert(bytes.end(), member.begin(), member.end());
      break;
    }
    case 3:
      bytes.resize(draw.below(bytes.size()));
      break;
    case 4: {
      Bytes inner(bytes.begin() + kHead, bytes.end());
      mutateBytes(inner, draw);
      bytes.resize(kHead);
      bytes.insert(bytes.end(), inner.begin(), inner.end());
      break;
    }
    default:
      bytes.insert(bytes.end(), draw.below(30), static_cast<std::uint8_t>(draw.below(256)));
  }
}

}  // namespace

const Target targets::gzip{"gzip", &run, &seeds, &mutate};

}  // namespace muster::fuzz
