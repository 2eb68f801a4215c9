#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
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

/// As in "<directory>/<baseName>-best.safetensors": the best state of a training.
std::filesystem::path bestCheckpointPath(const std::filesystem::path& directory, std::string_view baseName);

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

/// A training that is to write checkpoints into a directory, before its first step.
struct CheckpointWriter {
  /// The file from which the training continues; empty: none, or it is not known.
  std::filesystem::path continues = {};
  /// The place of the model, used if `continues` is empty: checkpoints up to it count as the training's own.
  std::optional<CheckpointPlace> place = {};
  /// Files in the directory that this training has written.
  std::set<std::filesystem::path> own = {};
  // What a user can do, for the errors:
  std::string toContinue = "continue that training";    ///< the one whose files are in the directory
  std::string toSeparate = "choose another directory";  ///< so that the two do not mix
};

/// Refuses to mix the checkpoints of two trainings in one directory, since a later resume would take the
/// newest file, of whichever training it is. The directory may be missing.
///
/// Allowed are: a directory without checkpoints; files that count as the training's own; and a training that
/// continues from the directory's newest checkpoint, from a file outside that holds the same state, for
/// example a model saved after that checkpoint, or from the best state if there is no other file. Looks at
/// names, and reads files only to compare states.
/// @throws FileError for the directory if it holds checkpoints of another training, its best state included,
///         or if the training continues from one of its checkpoints and newer ones are there; as
///         checkpointsIn.
void requireOwnCheckpoints(const std::filesystem::path& directory, std::string_view baseName,
                           const CheckpointWriter& writer);

}  // namespace muster
