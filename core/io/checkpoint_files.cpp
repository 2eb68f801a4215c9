#include "muster/core/io/checkpoint_files.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <string>
#include <system_error>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/detail/directory_names.h"
#include "muster/core/io/input_file.h"
#include "muster/core/io/model_file.h"
#include "muster/core/io/output_path.h"

namespace muster {
namespace {

constexpr std::string_view kEpoch = "-epoch-", kIteration = "-iteration-", kEnd = ".safetensors";

/// Takes a prefix and the number after it from the front of a text.
std::optional<std::int64_t> takeNumber(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return {};
  std::int64_t number = 0;
  const char* const begin = text.data() + prefix.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<CheckpointPlace> placeOf(std::string_view name, std::string_view baseName) {
  if (!name.starts_with(baseName)) return {};
  name.remove_prefix(baseName.size());
  const auto epoch = takeNumber(name, kEpoch);
  if (!epoch) return {};
  const auto iteration = takeNumber(name, kIteration);
  if (name != kEnd) return {};
  return CheckpointPlace{*epoch, iteration.value_or(0)};
}

/// Throws the error of requireOwnCheckpoints. @param files  to remove, as in "these files".
[[noreturn]] void refuse(const std::filesystem::path& directory, const std::string& problem,
                         const CheckpointWriter& writer, std::string_view files) {
  throw FileError(directory, fmt::format("{}; {}, {}, or remove {}", problem, writer.toContinue,
                                         writer.toSeparate, files));
}

}  // namespace

std::filesystem::path checkpointPath(const std::filesystem::path& directory, std::string_view baseName,
                                     const CheckpointPlace& place) {
  auto name = fmt::format("{}{}{:04}", baseName, kEpoch, place.epoch);
  if (place.iteration > 0) name += fmt::format("{}{:08}", kIteration, place.iteration);
  return directory / (name + std::string(kEnd));
}

std::filesystem::path bestCheckpointPath(const std::filesystem::path& directory, std::string_view baseName) {
  return directory / fmt::format("{}-best{}", baseName, kEnd);
}

std::vector<CheckpointFile> checkpointsIn(const std::filesystem::path& directory, std::string_view baseName) {
  std::vector<CheckpointFile> found;
  std::error_code error;
  for (const auto& name : detail::namesIn(directory, error))
    if (const auto place = placeOf(name, baseName)) found.push_back({directory / name, *place});
  if (error == std::errc::no_such_file_or_directory) return {};
  if (error) throw FileError(directory, fmt::format("cannot be read: {}", error.message()));
  std::ranges::sort(found, {}, &CheckpointFile::place);
  return found;
}

std::optional<std::filesystem::path> newestCheckpoint(const std::filesystem::path& directory,
                                                      std::string_view baseName) {
  const auto files = checkpointsIn(directory, baseName);
  std::exception_ptr problem;  // of the newest
  for (std::size_t i = files.size(); i-- > 0;) try {
      checkModelFile(files[i].path);
      return files[i].path;
    } catch (const FileError& error) {
      if (!problem) problem = std::current_exception();
      if (files.size() > 1)
        logWarning("a checkpoint is skipped{}: {}", i > 0 ? ", the one before it is used" : "", error.what());
    }
  if (files.size() > 1)
    throw FileError(directory, fmt::format("none of its {} checkpoints can be used; the newest, {}",
                                           files.size(), describe(problem)));
  if (problem) std::rethrow_exception(problem);
  return {};
}

void requireOwnCheckpoints(const std::filesystem::path& directory, std::string_view baseName,
                           const CheckpointWriter& writer) {
  const auto continuesFrom = [&](const std::filesystem::path& path) {
    return isSameFile(writer.continues, path);
  };
  const auto best = bestCheckpointPath(directory, baseName);
  if (writer.own.contains(best) && continuesFrom(best)) return;
  auto files = checkpointsIn(directory, baseName);
  const auto continued = std::ranges::find_if(files, continuesFrom, &CheckpointFile::path);
  const bool isOwn = continued != files.end() && writer.own.contains(continued->path);
  const CheckpointPlace at = isOwn ? continued->place : CheckpointPlace{};
  std::erase_if(files, [&](const CheckpointFile& file) { return writer.own.contains(file.path); });
  if (isOwn && (files.empty() || files.back().place < at)) return;
  if (files.empty()) {
    if (fileTypeOf(best) == std::filesystem::file_type::not_found || writer.own.contains(best) ||
        continuesFrom(best))
      return;
    refuse(directory,
           fmt::format("holds {}, the best state of an earlier training", best.filename().string()), writer,
           "this file");
  }
  const auto& newest = files.back();
  const auto name = newest.path.filename().string();
  if (continuesFrom(newest.path)) return;
  if (writer.continues.empty()) {
    if (writer.place && newest.place <= *writer.place) return;
    const auto begin = writer.place ? fmt::format(", and this one begins at epoch {} (iteration {})",
                                                  writer.place->epoch + 1, writer.place->iteration)
                                    : "";
    refuse(directory, fmt::format("holds checkpoints of an earlier training, up to {}{}", name, begin),
           writer, "these files");
  }
  const auto from = writer.continues.filename().string();
  if (isOwn || std::ranges::any_of(files, continuesFrom, &CheckpointFile::path))
    refuse(
        directory,
        fmt::format("holds {}, which is newer than {}, from which the training is to continue", name, from),
        writer, "the newer files");
  if (continuesFrom(best))
    refuse(directory,
           fmt::format("holds checkpoints up to {}, but the training is to continue from {}", name, from),
           writer, "these files");
  if (holdSameState(writer.continues, newest.path)) return;
  refuse(directory,
         fmt::format("holds checkpoints up to {}, but the training is to continue from another file, {}",
                     name, writer.continues.string()),
         writer, "these files");
}

}  // namespace muster
