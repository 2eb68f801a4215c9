#include "examples/support/checkpoints.h"

#include <fmt/format.h>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/checkpoint_files.h"
#include "muster/core/io/input_file.h"
#include "muster/core/io/output_path.h"
#include "muster/core/listeners/checkpoint_lock.h"

namespace example {
namespace {

constexpr std::string_view kBaseName = "checkpoint";

/// What to do if `resume` leads to nothing.
std::string advice(const CheckpointChoice& choice) {
  const std::string both =
      "name the directory in --resume and --checkpoint-dir to begin a training that the same command "
      "continues "
      "later";
  if (choice.nodes < 2) return both;
  return fmt::format(
      "each node reads the checkpoint, and only node 0 writes it: let all nodes share its directory, or copy "
      "it to each. On every node, {}",
      both);
}

}  // namespace

std::filesystem::path fileToResume(const CheckpointChoice& choice) {
  const auto& path = choice.resume;
  if (path.empty()) return {};
  const auto type = muster::fileTypeOf(path);
  const bool own = muster::isSameFile(path, choice.directory);
  if (type == std::filesystem::file_type::not_found) {
    if (own) return {};
    throw muster::FileError(
        path, fmt::format("cannot be resumed: there is no such file or directory; {}", advice(choice)));
  }
  if (type != std::filesystem::file_type::directory && !own) return path;
  if (auto newest = muster::newestCheckpoint(path, kBaseName)) return *newest;
  if (own) return {};
  throw muster::FileError(
      path, fmt::format("cannot be resumed: the directory holds no checkpoint; {}", advice(choice)));
}

void logNothingToResume(const std::filesystem::path& resume) {
  muster::logInfo(
      "nothing to resume in {}: this node begins the training; if other nodes continue one, let all share "
      "the directory, or copy its newest checkpoint to each",
      resume.string());
}

void requireNoOtherTraining(const CheckpointChoice& choice) {
  const auto& directory = choice.directory;
  if (directory.empty() || muster::fileTypeOf(directory) != std::filesystem::file_type::directory) return;
  const muster::CheckpointLock lock(directory, std::string(kBaseName));
}

void requireOwnCheckpoints(const CheckpointChoice& choice, const std::filesystem::path& file) {
  const auto& directory = choice.directory;
  if (directory.empty() || muster::fileTypeOf(directory) != std::filesystem::file_type::directory) return;
  if (!file.empty() && muster::isSameFile(choice.resume, directory)) return;
  const bool onlyBest = muster::checkpointsIn(directory, kBaseName).empty();
  const auto toResume = onlyBest ? muster::bestCheckpointPath(directory, kBaseName) : directory;
  muster::requireOwnCheckpoints(directory, kBaseName,
                                {.continues = file,
                                 .toContinue = fmt::format("continue it with --resume {}", toResume.string()),
                                 .toSeparate = "name another directory in --checkpoint-dir"});
}

}  // namespace example
