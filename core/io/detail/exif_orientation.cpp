#include "muster/core/io/detail/decoded_picture.h"

namespace muster::detail {

// Source: CIPA DC-008-2019 (EXIF 2.32), 4.6.4: tag 0x0112, a SHORT, in the first directory of a TIFF header.
int exifOrientation(FileBytes tiff) {
  constexpr std::size_t kHeader = 8, kEntry = 12;
  constexpr std::uint64_t kOrientation = 0x0112, kShort = 3;
  if (tiff.size() < kHeader || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return 1;
  const bool little = tiff[0] == 'I';
  const auto number = [&](std::uint64_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | tiff[at + (little ? bytes - 1 - i : i)];
    return value;
  };
  const std::uint64_t directory = number(4, 4);
  if (directory + 2 > tiff.size()) return 1;
  const std::uint64_t entries = number(directory, 2);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = directory + 2 + i * kEntry;
    if (entry + kEntry > tiff.size()) return 1;
    if (number(entry, 2) != kOrientation) continue;
    const std::uint64_t value = number(entry + 8, 2);
    return number(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace muster::detail
