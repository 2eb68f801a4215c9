#include "examples/compare_convergence/results_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/input_file.h"
#include "muster/core/io/json_fields.h"

namespace convergence {
namespace {

using muster::FileError;

constexpr std::string_view kProgram = "compare_convergence";
constexpr std::int64_t kFormat = 1;

std::string headerLine(const Recipe& recipe) {
  muster::JsonWriter json;
  json.put("program", kProgram);
  json.put("format", kFormat);
  json.list("recipe", recipe.size(), [&](std::size_t i, muster::JsonWriter& inside) {
    inside.put("option", std::string_view(recipe[i].first));
    inside.put("value", std::string_view(recipe[i].second));
  });
  return json.line();
}

/// @throws InvalidArgument for a line that is no header of this program.
std::map<std::string, std::string> recipeOf(const std::string& line) {
  std::map<std::string, std::string> recipe;
  std::string program;
  std::int64_t format = 0;
  muster::JsonReader json(line);
  json.field("program", program);
  json.field("format", format);
  muster::require(program == kProgram && format == kFormat,
                  "it is not of this program, or of another version");
  json.list("recipe", [&](muster::JsonReader& inside) {
    std::string option;
    inside.field("option", option);
    inside.field("value", recipe[option]);
  });
  json.finish();
  return recipe;
}

/// For example "--workers 2 (now 2,4)", one for each option that differs.
std::vector<std::string> differences(const std::map<std::string, std::string>& saved, const Recipe& now) {
  std::vector<std::string> all;
  for (const auto& [option, value] : now) {
    const auto found = saved.find(option);
    const std::string before = found == saved.end() ? "unset" : found->second;
    if (before != value) all.push_back(fmt::format("--{} {} (now {})", option, before, value));
  }
  return all;
}

/// Reads a file; "" if it does not exist.
std::string wholeFile(const std::filesystem::path& path) {
  if (muster::fileTypeOf(path) == std::filesystem::file_type::not_found) return "";
  muster::InputFile file(path);
  if (file.size() == 0)
    throw FileError(path, "is no results file: it is empty; remove it, or give another --out");
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size());
  return text;
}

}  // namespace

ResultsFile::ResultsFile(std::filesystem::path path, Recipe recipe)
    : path_(std::move(path)), recipe_(std::move(recipe)) {
  if (const auto text = wholeFile(path_); !text.empty()) read(text);
}

void ResultsFile::read(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  std::int64_t number = 1;
  try {
    std::getline(in, line);
    const auto differing = differences(recipeOf(line), recipe_);
    if (!differing.empty())
      throw FileError(path_, fmt::format("holds another grid: {}; give another --out, or the same options",
                                         fmt::join(differing, ", ")));
    for (number = 2; std::getline(in, line); ++number) {
      RunRecord run = runFromJson(line);
      muster::require(find(run.arm, run.seed) == nullptr, "it has the same arm and seed as an earlier line");
      runs_.push_back(std::move(run));
    }
  } catch (const muster::InvalidArgument& error) {
    throw FileError(path_,
                    fmt::format("is no results file: line {}: {}; give another --out{}", number, error.what(),
                                number == 1 ? "" : ", or remove that line and its run is trained again"));
  }
}

const RunRecord* ResultsFile::find(const Arm& arm, std::int64_t seed) const {
  const auto found =
      std::ranges::find_if(runs_, [&](const RunRecord& run) { return run.arm == arm && run.seed == seed; });
  return found == runs_.end() ? nullptr : &*found;
}

void ResultsFile::add(RunRecord run) {
  std::string text = headerLine(recipe_) + "\n";
  for (const auto& earlier : runs_) text += toJson(earlier) + "\n";
  text += toJson(run) + "\n";
  muster::writeFileAtomically(path_, text);
  runs_.push_back(std::move(run));
}

}  // namespace convergence
