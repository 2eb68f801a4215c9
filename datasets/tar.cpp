#include "muster/datasets/tar.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster {
namespace {

constexpr std::size_t kBlock = 512;

using Header = std::span<const std::uint8_t, kBlock>;

/// A text field of a header: up to its first zero.
std::string_view text(Header header, std::size_t offset, std::size_t size) {
  const std::string_view field(reinterpret_cast<const char*>(header.data()) + offset, size);
  return field.substr(0, field.find('\0'));
}

/// An octal number, possibly with spaces around it; empty if the field is no such number.
std::optional<std::uint64_t> octal(Header header, std::size_t offset, std::size_t size) {
  std::string_view digits = text(header, offset, size);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  digits = digits.substr(0, digits.find(' '));
  if (digits.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = 8 * value + static_cast<std::uint64_t>(digit - '0');
  }
  return value;
}

/// The sum of all bytes of the header, with the checksum field as spaces.
std::uint64_t checksum(Header header) {
  constexpr std::size_t kBegin = 148, kEnd = 156;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) sum += i >= kBegin && i < kEnd ? ' ' : header[i];
  return sum;
}

bool isEnd(Header header) {
  return std::ranges::all_of(header, [](std::uint8_t byte) { return byte == 0; });
}

bool isRegularFile(Header header) {
  const auto type = header[156];
  return type == '0' || type == '\0';
}

std::string nameOf(Header header) {
  const bool ustar = text(header, 257, 6) == "ustar";  // GNU has "ustar  ", and times instead of a prefix
  const auto prefix = ustar ? text(header, 345, 155) : "";
  return fmt::format("{}{}{}", prefix, prefix.empty() ? "" : "/", text(header, 0, 100));
}

}  // namespace

std::vector<TarEntry> readTar(std::span<const std::uint8_t> archive, const std::filesystem::path& path) {
  std::vector<TarEntry> entries;
  for (std::size_t at = 0;;) {
    if (archive.size() - at < kBlock)
      throw FileError(
          path, fmt::format("truncated tar archive: it ends at byte {} without an end mark", archive.size()));
    const Header header = archive.subspan(at).first<kBlock>();
    if (isEnd(header)) return entries;
    const auto size = octal(header, 124, 12);
    if (!size || octal(header, 148, 8) != checksum(header))
      throw FileError(path, fmt::format("not a tar archive, or damaged: no header at byte {}", at));
    at += kBlock;
    if (*size > archive.size() - at)
      throw FileError(path, fmt::format("truncated tar archive: {} has {} bytes, but {} follow",
                                        nameOf(header), *size, archive.size() - at));
    if (isRegularFile(header)) entries.push_back({nameOf(header), archive.subspan(at, *size)});
    at += std::min<std::size_t>((*size + kBlock - 1) / kBlock * kBlock, archive.size() - at);
  }
}

}  // namespace muster
