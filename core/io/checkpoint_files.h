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

/// What has such names, oldest first; none if there is no such directory. Looks at the names alone: some may
/// be broken, or no files.
/// @throws FileError for a directory that cannot be read.
std::vector<CheckpointFile> checkpointsIn(const std::filesystem::path& directory, std::string_view baseName);

/// The newest checkpoint that is complete, by its checksums. Skips broken ones, and what is no regular file,
/// each with a warning.
/// @return nothing if there are no files of such names.
/// @throws FileError as checkpointsIn. If none can be used it throws too, with their number and the reason of
///         the newest: without an error the caller would start a new training, which replaces them.
std::optional<std::filesystem::path> newestCheckpoint(const std::filesystem::path& directory,
                                                      std::string_view baseName = "checkpoint");

}  // namespace muster
