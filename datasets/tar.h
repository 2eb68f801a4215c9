#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace muster {

/// A regular file in a tar archive; `bytes` views the archive's memory.
struct TarEntry {
  std::string name;  ///< with its folders, as "cifar-10-batches-bin/test_batch.bin"
  std::span<const std::uint8_t> bytes;
};

/// The regular files in a tar archive (ustar, GNU or older), in order. Folders, links and extended headers
/// are skipped, so a name of more than 255 characters is truncated.
/// @param archive  the whole archive, unpacked; must outlive the entries.
/// @param path     for error messages.
/// @throws FileError naming the byte if a header is damaged or the archive is truncated.
/// Source: POSIX.1-1988, "Extended tar format" (ustar).
std::vector<TarEntry> readTar(std::span<const std::uint8_t> archive, const std::filesystem::path& path);

}  // namespace muster
