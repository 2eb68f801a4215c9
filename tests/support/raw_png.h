#pragma once

#include <doctest/doctest.h>
#include <zlib.h>

#include "tests/support/standard.h"

namespace muster::test {

/// A PNG file, also one that no library would write.
///
/// @param form  bit depth, colour type (0 grey, 2 RGB), compression, filter, interlacing.
/// @param rows  with their filters' numbers.
inline std::string pngOf(std::uint32_t width, std::uint32_t height, const std::string& form,
                         const std::vector<std::uint8_t>& rows) {
  const auto bigEndian = [](std::uint32_t number) {
    std::string bytes;
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xFF);
    return bytes;
  };
  const auto chunk = [&](const std::string& type, const std::string& data) {
    const std::string body = type + data;
    const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    return bigEndian(static_cast<std::uint32_t>(data.size())) + body +
           bigEndian(static_cast<std::uint32_t>(sum));
  };
  auto size = ::compressBound(rows.size());
  std::string packed(size, '\0');
  REQUIRE(::compress2(reinterpret_cast<Bytef*>(packed.data()), &size, rows.data(), rows.size(), 9) == Z_OK);
  packed.resize(size);
  return "\x89PNG\r\n\x1A\n" + chunk("IHDR", bigEndian(width) + bigEndian(height) + form) +
         chunk("IDAT", packed) + chunk("IEND", "");
}

/// The same with that many bytes of rows, all 0.
inline std::string pngOfZeros(std::uint32_t width, std::uint32_t height, const std::string& form,
                              std::size_t zeros) {
  return pngOf(width, height, form, std::vector<std::uint8_t>(zeros));
}

}  // namespace muster::test
