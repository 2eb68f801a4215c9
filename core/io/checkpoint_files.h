#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace muster {

/// A checkpoint's place: epochs finished, and within an epoch the iterations finished over all epochs.
struct CheckpointPlace {
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;  ///< 0: at the end of an epoch

  auto operator<=>(const CheckpointPlace&) const = default;
};

/// A checkpoint in a directory.
struct CheckpointFile {
  std::filesystem::path path;
  CheckpointPlace place;
};

/// As in "<directory>/<baseName>-epoch-0003.safetensors" or, within an epoch,
/// "<directory>/<baseName>-epoch-0003-iteration-00001234.safetensors".
std::filesystem::path checkpointPath(const std::filesystem::path& directory, std::string_view baseName,
                                     const CheckpointPlace& place);

/// The checkpoints with such names, oldest first; none if there is no such directory.
/// @throws FileError for a directory that cannot be read.
std::vector<CheckpointFile> checkpointsIn(const std::filesystem::path& directory, std::string_view baseName);

/// The newest checkpoint that is complete, by its checksums. Skips broken ones, each with a warning.
/// @return nothing if there are no files of such names.
/// @throws FileError as checkpointsIn. If all files are broken it throws too, naming the oldest: without an
///         error the caller would start a new training, which replaces them.
std::optional<std::filesystem::path> newestCheckpoint(const std::filesystem::path& directory,
                                                      std::string_view baseName = "checkpoint");

}  // namespace muster
