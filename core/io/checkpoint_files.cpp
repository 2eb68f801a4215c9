#include "muster/core/io/checkpoint_files.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <string>
#include <system_error>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/detail/directory_names.h"
#include "muster/core/io/model_file.h"

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

}  // namespace

std::filesystem::path checkpointPath(const std::filesystem::path& directory, std::string_view baseName,
                                     const CheckpointPlace& place) {
  auto name = fmt::format("{}{}{:04}", baseName, kEpoch, place.epoch);
  if (place.iteration > 0) name += fmt::format("{}{:08}", kIteration, place.iteration);
  return directory / (name + std::string(kEnd));
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

}  // namespace muster
