#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace muster {

/// All bytes of a regular file. @throws FileError.
std::vector<std::uint8_t> readFile(const std::filesystem::path& path);

/// Whether the bytes begin as a gzip file does. The file's name does not matter.
bool isGzip(std::span<const std::uint8_t> bytes);

/// The most bytes that a gzip file may unpack to. A small file can unpack to a thousand times its size.
inline constexpr std::size_t kMostUnpackedBytes = std::size_t{1} << 30;
/// The limit for texts and tables, which take four times their bytes when they are read.
inline constexpr std::size_t kMostUnpackedText = kMostUnpackedBytes / 4;

/// The unpacked contents of a gzip file, of all members in order.
/// @throws FileError naming `path` if the bytes are damaged, truncated, or followed by something else, or
///         unpack to more than `most`.
std::vector<std::uint8_t> unpackGzip(std::span<const std::uint8_t> bytes, const std::filesystem::path& path,
                                     std::size_t most = kMostUnpackedBytes);

/// A file's contents, unpacked.
struct FileContents {
  std::filesystem::path path;
  std::vector<std::uint8_t> bytes;
};

/// Reads a file, plain or gzip. @param most  see unpackGzip. @throws FileError.
FileContents readContents(const std::filesystem::path& path, std::size_t most = kMostUnpackedBytes);

}  // namespace muster
