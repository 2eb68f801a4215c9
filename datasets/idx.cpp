#include "muster/datasets/idx.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "muster/core/base/error.h"
#include "muster/datasets/file_bytes.h"

namespace muster {
namespace {

DType elementType(std::uint8_t code, const std::filesystem::path& path) {
  switch (code) {
    case 0x08:
      return DType::UInt8;
    case 0x0D:
      return DType::Float32;
    case 0x0E:
      return DType::Float64;
    default:
      throw FileError(path,
                      fmt::format("IDX element type {:#04x} is not supported, only unsigned byte (0x08), "
                                  "float (0x0d) and double (0x0e) are",
                                  code));
  }
}

std::uint32_t bigEndian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
         bytes[3];
}

/// Whether the sizes are too large for a Shape. A size of 0 counts as 1, so even an empty set is checked.
bool isTooLarge(const Shape& shape) {
  std::int64_t product = 1;
  for (const auto size : shape)
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(size, 1), &product)) return true;
  return product > Shape::kMaxElements;
}

}  // namespace

IdxHeader readIdxHeader(std::span<const std::uint8_t> contents, const std::filesystem::path& path) {
  if (contents.size() < 4)
    throw FileError(path, fmt::format("{} bytes are too few for an IDX file", contents.size()));
  if (contents[0] != 0 || contents[1] != 0)
    throw FileError(
        path, fmt::format("not an IDX file: the magic number is 0x{:02x}, but it must begin with 0x0000",
                          fmt::join(contents.first(4), "")));
  IdxHeader header;
  header.dtype = elementType(contents[2], path);
  const std::size_t rank = contents[3];
  if (rank < 1 || rank > static_cast<std::size_t>(Shape::kMaxRank))
    throw FileError(
        path, fmt::format("an IDX file of {} dimensions, but 1 to {} are supported", rank, Shape::kMaxRank));
  header.offset = 4 + 4 * rank;
  if (contents.size() < header.offset)
    throw FileError(path, fmt::format("truncated: {} bytes, but its IDX header alone takes {}",
                                      contents.size(), header.offset));
  for (std::size_t i = rank; i-- > 0;) header.shape = header.shape.prepend(bigEndian(&contents[4 + 4 * i]));

  if (isTooLarge(header.shape))
    throw FileError(path,
                    fmt::format("damaged or truncated: its header says {}, which is too large for any memory",
                                header.shape.toString()));
  const auto expected = static_cast<std::uint64_t>(header.shape.elements()) * sizeOf(header.dtype);
  const std::uint64_t present = contents.size() - header.offset;
  if (present != expected)
    throw FileError(path, fmt::format("{}: its header says {} {}, that is {} bytes, but {} follow",
                                      present < expected ? "truncated" : "over-long", toString(header.dtype),
                                      header.shape.toString(), expected, present));
  return header;
}

Tensor readIdx(const std::filesystem::path& path) {
  const auto contents = readContents(path).bytes;
  const IdxHeader header = readIdxHeader(contents, path);
  Tensor tensor = Tensor::empty(header.shape, header.dtype);
  const auto size = sizeOf(header.dtype);
  auto* to = static_cast<std::uint8_t*>(tensor.raw());
  std::copy(contents.begin() + static_cast<std::ptrdiff_t>(header.offset), contents.end(), to);
  if constexpr (std::endian::native == std::endian::little)
    for (std::size_t i = 0; size > 1 && i < tensor.bytes(); i += size) std::reverse(to + i, to + i + size);
  return tensor;
}

}  // namespace muster
