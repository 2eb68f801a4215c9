#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace muster {

/// A regular file in a tar archive; `bytes` views the archive's.
struct TarEntry {
  std::string name;  ///< with its folders, as in "cifar-10-batches-bin/test_batch.bin"
  std::span<const std::uint8_t> bytes;
};

/// The regular files in a tar archive (ustar, GNU or older), in its order. Folders, links and the extended
/// headers of other programs are passed over, so a name of more than 255 characters comes shortened.
/// @param archive  the whole archive, unpacked; kept by the caller while the entries are used.
/// @param path     for the text of errors.
/// @throws FileError naming the byte where a header is damaged or the archive is cut off.
/// Source: POSIX.1-1988, "Extended tar format" (ustar).
std::vector<TarEntry> readTar(std::span<const std::uint8_t> archive, const std::filesystem::path& path);

}  // namespace muster
