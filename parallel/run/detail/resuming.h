#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "muster/core/nn/network.h"
#include "muster/parallel/run/prepared_run.h"

namespace muster::detail {

/// The file to which `training.resume` refers: itself, or the newest intact checkpoint of a directory.
/// Also chooses the run's data by it, as `chooseData`.
/// @throws FileError for a file that `muster train` did not write, or that belongs to a different run, naming
/// the fields that differ; one that does not exist, or a directory without a checkpoint, unless
/// `listeners.checkpoints.directory` is the same, where a training then begins.
ResumedRun resumedBy(RunFile& run, int nodes = 1);

/// Number of batches already trained in the epoch in progress of a resumed network.
/// @throws FileError if its file has impossible numbers.
std::int64_t batchesTrained(Network& network);

/// For a node other than 0, which prints nothing else: logs that it found nothing to resume. If other nodes
/// did, the training fails, and this line says why.
void logNothingToResume(const std::filesystem::path& resume);

/// A remark if the model of a new training replaces one that was trained on other data; else "".
std::string replacesRemark(const RunFile& run);

/// Checks before the data are read that no other training writes checkpoints into the run's directory now.
/// Only for a training that is to begin, since it takes the lock of CheckpointListener for a moment.
/// @throws FileError naming the process that has the lock.
void requireNoOtherTraining(const RunFile& run);

/// Checks before the data are read what CheckpointListener checks when the training begins: that its
/// checkpoints do not mix with those of an earlier one. Call it on the node that writes them, and not for
/// elastic nodes: another one may have begun the training.
/// @param file  that the run resumes.
/// @throws FileError, with the names of the fields, unless it is the newest checkpoint of the run's
///         directory, which `training.resume` names.
void requireOwnCheckpoints(const RunFile& run, const std::filesystem::path& file);

}  // namespace muster::detail
