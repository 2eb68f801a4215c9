#include "muster/datasets/md5.h"

#include <fmt/ranges.h>

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
  boost::uuids::detail::md5::digest_type words;
  hash.get_digest(words);
  std::array<std::uint8_t, 16> digest;  // the sum's bytes in their order, whatever the words' byte order
  static_assert(sizeof words == sizeof digest);
  std::memcpy(digest.data(), &words, sizeof digest);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace muster
