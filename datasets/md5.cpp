#include "muster/datasets/md5.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/uuid/detail/md5.hpp>
#include <cstring>

namespace muster {

std::string md5(std::span<const std::uint8_t> bytes) {
  boost::uuids::detail::md5 hash;
  // Boost reads the input as 32-bit words wherever it lies; the copy aligns it.
  alignas(16) std::array<std::uint8_t, 16384> block;
  while (!bytes.empty()) {
    const auto size = std::min(bytes.size(), block.size());
    std::memcpy(block.data(), bytes.data(), size);
    hash.process_bytes(block.data(), size);
    bytes = bytes.subspan(size);
  }
  // Four words in Boost 1.81, whose hexadecimal digits are the sum's; sixteen bytes in later versions.
  boost::uuids::detail::md5::digest_type digest;
  hash.get_digest(digest);
  std::string text;
  for (const auto part : digest) text += fmt::format("{:0{}x}", part, 2 * sizeof part);
  return text;
}

}  // namespace muster
