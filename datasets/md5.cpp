#include "muster/datasets/md5.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cstddef>

#include "muster/core/base/error.h"

namespace muster {

std::string md5(std::span<const std::uint8_t> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  std::size_t size = 0;
  // "-fips" also works on systems that restrict OpenSSL to FIPS 140; the sum only distinguishes files.
  if (EVP_Q_digest(nullptr, "MD5", "-fips", bytes.data(), bytes.size(), digest.data(), &size) != 1) {
    throw Error("md5: OpenSSL on this system has no MD5 (its default provider is not loaded)");
  }
  std::string text;
  for (const auto byte : std::span(digest).first(size)) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace muster
