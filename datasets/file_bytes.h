#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace muster {

/// All bytes of a file. @throws FileError.
std::vector<std::uint8_t> readFile(const std::filesystem::path& path);

/// Whether the bytes begin as a gzip file does; the name of a file is not asked.
bool isGzip(std::span<const std::uint8_t> bytes);

/// What a gzip file's bytes unpack to, all members one after the other.
/// @throws FileError naming `path` where they are damaged, cut off, or followed by something else.
std::vector<std::uint8_t> unpackGzip(std::span<const std::uint8_t> bytes, const std::filesystem::path& path);

/// A file's contents, unpacked if it was packed.
struct FileContents {
  std::filesystem::path path;
  std::vector<std::uint8_t> bytes;
};

/// Reads a file, plain or packed by gzip. @throws FileError.
FileContents readContents(const std::filesystem::path& path);

}  // namespace muster
