#include "examples/support/paths.h"

#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/output_path.h"

namespace example {

using muster::require;

void Paths::reads(std::string option, const std::filesystem::path& file, std::string replacedBy) {
  if (!file.empty())
    files_.push_back({.option = std::move(option), .path = file, .replacedBy = std::move(replacedBy)});
}

void Paths::writes(std::string option, const std::filesystem::path& file) {
  if (!file.empty()) files_.push_back({.option = std::move(option), .path = file, .written = true});
}

void Paths::writesInto(std::string option, const std::filesystem::path& directory,
                       const std::vector<std::string>& names) {
  if (directory.empty()) return;
  for (const auto& name : names)
    files_.push_back({.option = option, .path = directory / name, .written = true, .inDirectory = true});
  directories_.push_back({.option = std::move(option), .path = directory, .written = true});
}

void Paths::checkPair(const Entry& one, const Entry& other) const {
  if ((!one.written && !other.written) || one.option == other.option) return;
  if (one.replacedBy == other.option || other.replacedBy == one.option) return;
  require(!muster::isSameFile(one.path, other.path),
          "{} and {} are the same file, {}: writing it for one would overwrite the other", one.option,
          other.option, one.path.string());
}

void Paths::checkNames() const {
  for (std::size_t i = 0; i < files_.size(); ++i)
    for (std::size_t j = i + 1; j < files_.size(); ++j) checkPair(files_[i], files_[j]);
  for (const auto& file : files_)
    for (const auto& directory : directories_)
      require(
          !file.written || file.option == directory.option || !muster::isInside(directory.path, file.path),
          "{} and {} cannot both be there: {} is to be a file, and {} a directory", file.option,
          directory.option, file.path.string(), directory.path.string());
}

void Paths::check() const {
  checkNames();
  for (const auto& directory : directories_) muster::checkOutputDirectory(directory.path);
  for (const auto& file : files_) {
    std::error_code unreachable;
    const bool made = file.inDirectory && !std::filesystem::exists(file.path.parent_path(), unreachable);
    if (file.written && !made) muster::checkOutputFile(file.path);
  }
}

}  // namespace example
