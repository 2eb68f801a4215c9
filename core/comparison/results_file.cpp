#include "muster/core/comparison/results_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/comparison/tuned_field.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/input_file.h"
#include "muster/core/io/json_fields.h"

namespace muster {
namespace {

constexpr std::string_view kProgram = "muster compare";
constexpr std::int64_t kFormat = 2;

void visit(Fields& f, ComparisonGrid& grid) {
  f.field("metric", grid.metric);
  f.field("dataChecksum", grid.contents);
  f.field("trainExamples", grid.trainExamples);
  f.field("testExamples", grid.testExamples);
  f.field("testEvery", grid.testEvery);
}

std::string headerLine(ComparisonGrid grid) {
  JsonWriter json;
  json.put("program", kProgram);
  json.put("format", kFormat);
  visit(json, grid);
  json.numbers("seeds", {grid.seeds.begin(), grid.seeds.end()});
  json.put("tune", std::span<const std::string>(grid.tune));
  json.list("arms", grid.arms.size(), [&](std::size_t i, JsonWriter& arm) {
    arm.put("name", std::string_view(grid.arms[i].name));
    arm.put("sets", std::span<const std::string>(grid.arms[i].settings));
  });
  std::vector<std::string> settings;
  for (const auto& [path, value] : grid.common) settings.push_back(fmt::format("{}={}", path, value));
  json.put("settings", std::span<const std::string>(settings));
  return json.line();
}

/// @throws InvalidArgument for a line that is no header of this program.
ComparisonGrid gridOf(const std::string& line) {
  JsonReader json(line);
  std::string program;
  std::int64_t format = 0;
  json.field("program", program);
  json.field("format", format);
  require(program == kProgram, "it is not of this program");
  require(format == kFormat, "it has format {}, of another version, and this one reads {}", format, kFormat);
  ComparisonGrid grid;
  visit(json, grid);
  std::string earlier;
  json.field("contents", earlier);  // of the first examples alone, by an earlier version: not compared
  std::vector<double> seeds;
  json.numbers("seeds", seeds);
  for (const double seed : seeds) grid.seeds.push_back(static_cast<std::int64_t>(seed));
  json.strings("tune", grid.tune);
  grid.tune = joinTuning(grid.tune, grid.tune).value();  // an earlier version took equal values, as 0.1,0.10
  json.list("arms", [&](JsonReader& in) {
    ComparisonArm& arm = grid.arms.emplace_back();
    in.field("name", arm.name);
    in.strings("sets", arm.settings);
  });
  std::vector<std::string> settings;
  json.strings("settings", settings);
  for (const auto& one : settings) {
    const auto equals = std::min(one.find('='), one.size() - 1);
    grid.common.emplace(one.substr(0, equals), one.substr(equals + 1));
  }
  json.finish();
  return grid;
}

/// Collects what differs, as in "training.epochs 1 (now 2)".
struct Differences {
  std::vector<std::string> all;

  void note(const std::string& name, const std::string& before, const std::string& now) {
    if (before != now) all.push_back(fmt::format("{} {} (now {})", name, before, now));
  }
  void note(const std::string& name, std::int64_t before, std::int64_t now) {
    note(name, fmt::format("{}", before), fmt::format("{}", now));
  }
};

using Settings = decltype(ComparisonGrid::common);

void noteSettings(const Settings& saved, const Settings& now, Differences& into) {
  const auto valueIn = [](const Settings& settings, const std::string& path) {
    const auto found = settings.find(path);
    return found == settings.end() ? std::string("unset") : found->second;
  };
  auto paths = saved;
  paths.insert(now.begin(), now.end());
  for (const auto& [path, value] : paths) into.note(path, valueIn(saved, path), valueIn(now, path));
}

/// One text for each setting that differs.
std::vector<std::string> differences(const ComparisonGrid& saved, const ComparisonGrid& now) {
  Differences found;
  noteSettings(saved.common, now.common, found);
  if (!found.all.empty()) return found.all;  // the data follow from them
  found.note("examples to train with", saved.trainExamples, now.trainExamples);
  found.note("examples to test with", saved.testExamples, now.testExamples);
  if (found.all.empty() && !saved.contents.empty())
    found.note("the data's contents", saved.contents, now.contents);
  if (now.testEvery > 0) found.note("testEvery", saved.testEvery, now.testEvery);
  const auto list = [](const std::vector<std::string>& tune) {
    return tune.empty() ? std::string("unset") : fmt::format("{}", fmt::join(tune, " "));
  };
  if (!now.tune.empty() && !joinTuning(saved.tune, now.tune))
    found.note("tune", list(saved.tune), list(now.tune));
  return found.all;
}

/// @throws InvalidArgument for a line that was cut.
void requireWhole(const std::string& line) {
  require(!line.starts_with('{') || line.ends_with('}'), "it is not whole, its end is missing");
}

/// Reads a file; "" if it does not exist.
std::string wholeFile(const std::filesystem::path& path, const std::string& other) {
  if (fileTypeOf(path) == std::filesystem::file_type::not_found) return "";
  InputFile file(path);
  if (file.size() == 0)
    throw FileError(path, fmt::format("is no results file: it is empty; remove it, or give {}", other));
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size());
  return text;
}

}  // namespace

ResultsFile::ResultsFile(std::filesystem::path path, std::string other)
    : path_(std::move(path)), other_(std::move(other)) {
  if (const auto text = wholeFile(path_, other_); !text.empty()) read(text);
}

void ResultsFile::read(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  std::int64_t number = 1;
  try {
    std::getline(in, line);
    requireWhole(line);
    grid_ = gridOf(line);
    fresh_ = false;
    for (number = 2; std::getline(in, line); ++number) {
      requireWhole(line);
      RunRecord run = runFromJson(line);
      require(find(run.settings, run.seed) == nullptr, "it has the same run as an earlier line");
      run.metric = grid_.metric;
      runs_.push_back(std::move(run));
    }
  } catch (const InvalidArgument& error) {
    throw FileError(path_,
                    fmt::format("is no results file: line {}: {}; give {}{}", number, error.what(), other_,
                                number == 1 ? "" : ", or remove that line and its run is trained again"));
  }
}

void ResultsFile::join(const ComparisonGrid& now) {
  if (fresh_) {
    grid_ = now;
    fresh_ = false;
    return;
  }
  if (const auto all = differences(grid_, now); !all.empty())
    throw FileError(
        path_, fmt::format("holds a comparison of another run: {}; give {}", fmt::join(all, ", "), other_));
  if (grid_.contents.empty() && !now.contents.empty())
    logWarning(
        "{}: an earlier version of muster wrote no checksum of all the data, so whether they have changed "
        "since "
        "is not checked",
        path_.string());
  for (const auto& arm : now.arms) {
    const auto same = std::ranges::find(grid_.arms, arm.name, &ComparisonArm::name);
    if (same == grid_.arms.end())
      grid_.arms.push_back(arm);
    else if (*same != arm)
      throw FileError(
          path_, fmt::format("holds another arm \"{}\": {} (now {}); give this one another name", arm.name,
                             fmt::join(same->settings, " "), fmt::join(arm.settings, " ")));
  }
  for (const auto seed : now.seeds)
    if (std::ranges::find(grid_.seeds, seed) == grid_.seeds.end()) grid_.seeds.push_back(seed);
  if (auto tune = joinTuning(grid_.tune, now.tune)) grid_.tune = std::move(*tune);
}

const RunRecord* ResultsFile::find(const std::vector<std::string>& settings, std::int64_t seed) const {
  const auto found = std::ranges::find_if(
      runs_, [&](const RunRecord& run) { return run.settings == settings && run.seed == seed; });
  return found == runs_.end() ? nullptr : &*found;
}

void ResultsFile::add(RunRecord run) {
  if (const auto* same = find(run.settings, run.seed))
    throw InvalidArgument(
        fmt::format("results: \"{}\" with seed {} has the settings of a finished run of \"{}\", and settings "
                    "identify runs",
                    run.arm, run.seed, same->arm));
  std::string text = headerLine(grid_) + "\n";
  for (const auto& earlier : runs_) text += toJson(earlier) + "\n";
  text += toJson(run) + "\n";
  writeFileAtomically(path_, text);
  runs_.push_back(std::move(run));
}

}  // namespace muster
