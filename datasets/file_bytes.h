#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace muster {

/// All bytes of a file. @throws FileError.
std::vector<std::uint8_t> readFile(const std::filesystem::path& path);

/// Whether the bytes begin as a gzip file does. The file's name does not matter.
bool isGzip(std::span<const std::uint8_t> bytes);

/// The unpacked contents of a gzip file, of all members in order.
/// @throws FileError naming `path` if the bytes are damaged, truncated, or followed by something else.
std::vector<std::uint8_t> unpackGzip(std::span<const std::uint8_t> bytes, const std::filesystem::path& path);

/// A file's contents, unpacked.
struct FileContents {
  std::filesystem::path path;
  std::vector<std::uint8_t> bytes;
};

/// Reads a file, plain or gzip. @throws FileError.
FileContents readContents(const std::filesystem::path& path);

}  // namespace muster
