#pragma once

#include <filesystem>
#include <string>

namespace example {

/// What a training resumes and where it saves checkpoints: `--resume` and `--checkpoint-dir` in errors.
struct CheckpointChoice {
  std::filesystem::path resume = {};     ///< a file or a directory; empty: nothing
  std::filesystem::path directory = {};  ///< of the checkpoints; empty: none
  int nodes = 1;                         ///< of the training; each of them reads the file to resume
};

/// The file that `resume` names: itself, or the newest intact checkpoint of a directory.
/// @return "" if there is none: `resume` is empty, or it is `directory`, which holds no checkpoint yet.
/// @throws muster::FileError if any other `resume` does not exist or holds no checkpoint.
std::filesystem::path fileToResume(const CheckpointChoice& choice);

/// For a node other than 0, which prints nothing else: logs that it found nothing to resume. If other nodes
/// did, the training fails, and this line says why.
void logNothingToResume(const std::filesystem::path& resume);

/// Checks before the data are read that no other training writes checkpoints into `directory` now. Only for a
/// training that is to begin, since it takes the lock of muster::CheckpointListener for a moment; otherwise
/// as requireOwnCheckpoints. @throws muster::FileError naming the process that has the lock.
void requireNoOtherTraining(const CheckpointChoice& choice);

/// Checks before the data are read what muster::CheckpointListener checks when the training begins: that its
/// checkpoints do not mix with those of an earlier one. Call it on the node
/// that writes them, and not for elastic nodes: another one may have begun the training.
/// @param file  from `fileToResume`.
/// @throws muster::FileError as muster::requireOwnCheckpoints, with the names of the options, unless the file
/// is
///         the newest checkpoint of `directory`, which `resume` names.
void requireOwnCheckpoints(const CheckpointChoice& choice, const std::filesystem::path& file);

}  // namespace example
