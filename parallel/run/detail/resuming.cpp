#include "muster/parallel/run/detail/resuming.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/checkpoint_files.h"
#include "muster/core/io/input_file.h"
#include "muster/core/io/output_path.h"
#include "muster/core/listeners/checkpoint_lock.h"
#include "muster/core/nn/training_state.h"
#include "muster/datasets/source/detail/data_fields.h"
#include "muster/parallel/run/detail/run_settings.h"
#include "muster/parallel/run/detail/saved_data.h"

namespace muster::detail {
namespace {

/// The run with the defaults that its strategy's options would have with so many workers.
RunFile withWorkers(RunFile run, std::int64_t workers) {
  try {
    RunFile other = run;
    other.training.workers = workers;
    other.makeStrategy(1);
    return other;
  } catch (const InvalidArgument&) {
    return run;  // the options do not fit these workers
  }
}

using Settings = std::map<std::string, std::string>;  // fields by path, as in "training.workers"

Settings settingsOf(const RunFile& run) {
  const auto fields = decisiveFields(run);
  return {fields.begin(), fields.end()};
}

/// Whether a field names a file of data, and not whether there is one: checksums compare what it holds.
bool namesOtherFile(std::string_view path, std::string_view was, std::string_view is) {
  const auto isName = [](std::string_view value) { return value != "unset" && value != "\"\""; };
  return isOneOf(path, {"data.train", "data.test", "data.trainImages", "data.trainLabels", "data.testImages",
                        "data.testLabels"}) &&
         isName(was) && isName(is);
}

/// Compares a run with the saved one of the checkpoint that it resumes. @return the fields that differ and
/// may.
/// @throws FileError that names the others that differ.
std::string allowedChanges(const std::filesystem::path& file, const Settings& saved, const Settings& now) {
  const auto valueIn = [](const Settings& settings, const std::string& path) {
    const auto found = settings.find(path);
    return found == settings.end() ? "unset" : found->second;
  };
  auto all = saved;
  all.insert(now.begin(), now.end());
  const bool checksums = hasChecksums(file);  // which are compared once the data are read
  std::vector<std::string> refused, allowed;
  for (const auto& [path, value] : all)
    if (const auto was = valueIn(saved, path), is = valueIn(now, path);
        was != is && !(checksums && namesOtherFile(path, was, is)))
      (mayDiffer(path) ? allowed : refused).push_back(fmt::format("{} {} (now {})", path, was, is));
  if (!refused.empty()) {
    constexpr std::size_t kShown = 5;
    const auto more = refused.size() - std::min(refused.size(), kShown);
    refused.resize(refused.size() - more);
    throw FileError(
        file, fmt::format("cannot be resumed by this run: it was trained with {}{}", fmt::join(refused, ", "),
                          more > 0 ? fmt::format(", and {} more differ", more) : ""));
  }
  return fmt::format("{}", fmt::join(allowed, ", "));
}

constexpr std::string_view kBaseName = "checkpoint";

/// What to do if `resume` leads to nothing.
std::string advice(const std::filesystem::path& resume, int nodes) {
  const auto both = fmt::format(
      "training.resume={} and listeners.checkpoints.directory={} together begin a training that the same run "
      "continues later",
      resume.string(), resume.string());
  if (nodes < 2) return both;
  return fmt::format(
      "each node reads the checkpoint, and only node 0 writes it: let all nodes share its directory, or copy "
      "it to each. On every node, {}",
      both);
}

/// The directory of the run's checkpoints; "": it writes none.
std::filesystem::path directoryOf(const RunFile& run) {
  return run.listeners.checkpoints ? run.listeners.checkpoints->directory : "";
}

/// The file that `training.resume` names: itself, or the newest intact checkpoint of a directory. "" if there
/// is none and it is the directory of the run's own checkpoints.
std::filesystem::path fileToResume(const RunFile& run, int nodes) {
  const std::filesystem::path path = run.training.resume;
  if (path.empty()) return {};
  const auto type = fileTypeOf(path);
  const bool own = isSameFile(path, directoryOf(run));
  if (type == std::filesystem::file_type::not_found) {
    if (own) return {};
    throw FileError(
        path, fmt::format("cannot be resumed: there is no such file or directory; {}", advice(path, nodes)));
  }
  if (type != std::filesystem::file_type::directory && !own) return path;
  if (auto newest = newestCheckpoint(path, kBaseName)) return *newest;
  if (own) return {};
  throw FileError(
      path, fmt::format("cannot be resumed: the directory holds no checkpoint; {}", advice(path, nodes)));
}

}  // namespace

std::int64_t batchesTrained(Network& network) {
  const auto position = namingResumedFile(network, [&] { return positionIn(network.trainingState()); });
  return position ? position->nextBatch + std::ssize(position->trainedLater) : 0;
}

ResumedRun resumedBy(RunFile& run, int nodes) {
  auto file = fileToResume(run, nodes);
  if (file.empty()) return {};
  const auto saved = runIn(file);
  if (!saved) throw FileError(file, "cannot be resumed: it was not saved by muster train");
  chooseData(run, file);
  auto now = settingsOf(withWorkers(run, saved->training.workers));
  now["training.workers"] = fmt::format("{}", run.training.workers);
  auto changes = allowedChanges(file, settingsOf(*saved), now);
  return {std::move(file), std::move(changes)};
}

void logNothingToResume(const std::filesystem::path& resume) {
  logInfo(
      "nothing to resume in {}: this node begins the training; if other nodes continue one, let all share "
      "the directory, or copy its newest checkpoint to each",
      resume.string());
}

std::string replacesRemark(const RunFile& run) try {
  const std::filesystem::path model = run.training.model;
  if (model.empty() || fileTypeOf(model) != std::filesystem::file_type::regular) return {};
  const auto saved = runIn(model);
  if (!saved) return {};
  const auto& before = saved->data;
  const bool sameType = before.type == run.data.type;
  if (sameType && before.train == run.data.train && before.directory == run.data.directory) return {};
  const auto& from = !before.train.empty() ? before.train : sameType ? before.directory : before.type;
  return fmt::format("replaces {}, which was trained on {}; training.model names another file",
                     model.string(), from.empty() ? before.type : from);
} catch (const Error&) {
  return {};  // it is no model of this program
}

void requireNoOtherTraining(const RunFile& run) {
  const auto directory = directoryOf(run);
  if (directory.empty() || fileTypeOf(directory) != std::filesystem::file_type::directory) return;
  const CheckpointLock lock(directory, std::string(kBaseName));
}

void requireOwnCheckpoints(const RunFile& run, const std::filesystem::path& file) {
  const auto directory = directoryOf(run);
  if (directory.empty() || fileTypeOf(directory) != std::filesystem::file_type::directory) return;
  if (!file.empty() && isSameFile(run.training.resume, directory)) return;
  const bool onlyBest = checkpointsIn(directory, kBaseName).empty();
  const auto toResume = onlyBest ? bestCheckpointPath(directory, kBaseName) : directory;
  muster::requireOwnCheckpoints(
      directory, kBaseName,
      {.continues = file,
       .toContinue = fmt::format("continue it with training.resume={}", toResume.string()),
       .toSeparate = "name another directory, listeners.checkpoints.directory=DIRECTORY"});
}

}  // namespace muster::detail
