#include "examples/muster/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "examples/muster/pages.h"
#include "examples/muster/standard_streams.h"
#include "muster/core/base/error.h"
#include "muster/core/base/text_table.h"
#include "muster/core/eval/detail/summary_title.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/output_path.h"
#include "muster/core/io/picture.h"
#include "muster/core/io/safetensors.h"
#include "muster/parallel/run/run_file.h"

namespace program {

using muster::require;

namespace {

/// Whether the file, or the file that this link leads to, has the name of a picture.
bool hasPictureName(const std::filesystem::path& file) {
  return muster::isPicture(muster::followLinks(file));
}

/// Whether the file is in the directory and has a name of checkpoints, which are written and removed there.
bool isCheckpointIn(const std::filesystem::path& directory, const std::filesystem::path& file) {
  const auto name = file.filename().string();
  return (name.starts_with("checkpoint-epoch-") || name == "checkpoint-best.safetensors") &&
         muster::isSameFile(directory / name, file);
}

/// A text near the beginning of what the programs write under a name that is not the user's choice; "": a
/// file of another name, or one that this program does not write.
std::string markOf(std::string_view name) {
  if (name == "report.html") return std::string(pageMark());
  if (name == "confusion.txt") return fmt::format("\n{}", muster::detail::kConfusionTitle);
  return name.ends_with(".curves.jsonl") ? std::string(curvesMark()) : "";
}

/// The beginning of a file; "" if there is none, or no regular one.
std::string beginningOf(const std::filesystem::path& file) {
  constexpr std::streamsize kBeginning = 1 << 16;
  std::error_code missing;
  if (!std::filesystem::is_regular_file(file, missing)) return {};
  std::string beginning(kBeginning, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(beginning.data(), kBeginning);
  beginning.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return beginning;
}

/// A text without blanks and line ends.
std::string compact(std::string_view text) {
  std::string all;
  for (const char c : text)
    if (std::string_view(" \t\r\n").find(c) == std::string_view::npos) all += c;
  return all;
}

/// Whether a file begins as train and evaluate write results.
bool isResults(std::string_view beginning) {
  const auto text = compact(beginning);
  return text.starts_with(R"({"program":"muster",)") ||
         (text.starts_with(R"({"task":)") && text.find(R"(,"examples":)") != text.npos);
}

/// Whether the first line has a column of predictions.
bool isPredictions(std::string_view beginning) {
  const auto fields = muster::csvFields(beginning.substr(0, beginning.find_first_of("\r\n")));
  return std::ranges::any_of(fields, [](const std::string& field) {
    return field == "prediction" || field.starts_with("prediction of ");
  });
}

/// Whether a file that begins so has this content.
bool has(Content content, std::string_view beginning) {
  switch (content) {
    case Content::Any:
      return true;
    case Content::Model:
      return muster::isSafetensors(beginning);
    case Content::Results:
      return isResults(beginning);
    case Content::Network:
      return compact(beginning).starts_with(R"({"format":"muster.)");
    case Content::Predictions:
      return isPredictions(beginning);
    case Content::Page:
      return beginning.find(pageMark()) != beginning.npos;
    case Content::Onnx:  // its first field, the version
      return beginning.starts_with('\x08');
    case Content::Deeplearning4j:
      return beginning.starts_with("PK") && beginning.find("configuration.json") != beginning.npos;
  }
  return true;
}

std::string_view nounOf(Content content) {
  switch (content) {
    case Content::Any:
      break;
    case Content::Model:
      return "no model or weights";
    case Content::Results:
      return "no result in JSON";
    case Content::Network:
      return "no network's configuration";
    case Content::Predictions:
      return "no predictions";
    case Content::Page:
      return "no page of this program";
    case Content::Onnx:
      return "no ONNX model";
    case Content::Deeplearning4j:
      return "no model of Deeplearning4j";
  }
  return "";
}

}  // namespace

bool isModelFile(const std::string& path) {
  return path.ends_with(".safetensors") || muster::isSafetensors(beginningOf(path));
}

void Paths::reads(std::string option, const std::filesystem::path& file, std::string replacedBy) {
  if (!file.empty())
    files_.push_back({.option = std::move(option), .path = file, .replacedBy = std::move(replacedBy)});
}

void Paths::readsPictures(std::string option, const std::filesystem::path& directory) {
  if (!directory.empty()) pictures_.push_back({.option = std::move(option), .path = directory});
}

void Paths::writesResult(std::string option, const std::filesystem::path& file, Content content) {
  if (!isStandardOutput(file)) writes(std::move(option), file, content);
}

void Paths::writes(std::string option, const std::filesystem::path& file, Content content) {
  require(!isStandardOutput(file), "{}: {} is standard output; give the name of a file{}", option,
          file.string(), file == "-" ? ", and if - is one, write ./-" : "");
  if (!file.empty())
    files_.push_back({.option = std::move(option), .path = file, .written = true, .content = content});
}

void Paths::writesInto(std::string option, const std::filesystem::path& directory,
                       const std::vector<std::string>& names) {
  if (directory.empty()) return;
  for (const auto& name : names)
    files_.push_back({.option = option, .path = directory / name, .written = true, .inDirectory = true});
  directories_.push_back({.option = std::move(option), .path = directory, .written = true});
}

void Paths::writesCheckpoints(std::string option, const std::filesystem::path& directory) {
  writesInto(std::move(option), directory);
  if (!directory.empty()) directories_.back().checkpoints = true;
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
  for (const auto& file : files_)
    for (const auto& directory : directories_)
      require(!file.written || !directory.checkpoints || !isCheckpointIn(directory.path, file.path),
              "{} is {}, a name of checkpoints, in the directory of {}: one would replace the other",
              file.option, file.path.string(), directory.option);
  for (const auto& file : files_)
    for (const auto& read : pictures_)
      require(!file.written || !hasPictureName(file.path) || !muster::isInside(file.path, read.path),
              "{} is {}, a picture in the directory of {}, {}: writing it would change the data", file.option,
              file.path.string(), read.option, read.path.string());
}

void Paths::checkReplaced(const Entry& file) {
  const auto mark = file.inDirectory ? markOf(file.path.filename().string()) : "";
  if (mark.empty() && file.content == Content::Any) return;
  const auto beginning = beginningOf(file.path);
  if (beginning.empty() || (beginning.find(mark) != beginning.npos && has(file.content, beginning))) return;
  const auto* const way = file.content == Content::Model ? "remove it, or give another" : "give another";
  throw muster::FileError(file.path,
                          fmt::format("would be replaced, but {}; {} {}",
                                      file.inDirectory ? "this program has not written it"
                                                       : fmt::format("it is {}", nounOf(file.content)),
                                      way, file.option));
}

void Paths::check() const {
  checkNames();
  for (const auto& directory : directories_) muster::checkOutputDirectory(directory.path);
  for (const auto& file : files_) {
    std::error_code unreachable;
    const bool made = file.inDirectory && !std::filesystem::exists(file.path.parent_path(), unreachable);
    if (file.written && !made) muster::checkOutputFile(file.path);
    if (file.written) checkReplaced(file);
  }
}

}  // namespace program
