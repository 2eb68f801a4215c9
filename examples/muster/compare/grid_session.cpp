#include "examples/muster/compare/grid_session.h"

#include <algorithm>
#include <utility>

#include "examples/muster/compare/output_files.h"
#include "examples/muster/compare/tuning.h"
#include "muster/core/base/error.h"

namespace comparing {

using muster::kTuningSeed;
using muster::require;
using muster::RunRecord;

GridSession::GridSession(const BaseRun& base, muster::ResultsFile& results, const std::filesystem::path& out)
    : base_(base), results_(results), out_(out) {
  for (const auto& arm : grid().arms) choices_.push_back(choicesOf(arm, grid().tune, base));
}

const std::vector<std::string>& GridSession::settingsOf(const std::vector<std::string>& sets) {
  auto& known = settings_[sets];
  if (known.empty() && !sets.empty()) known = base_.differences(base_.run(sets), 0);
  return known;
}

std::vector<std::string> GridSession::tuningSets(std::size_t arm, const muster::TuningChoice& choice) const {
  auto sets = grid().arms[arm].settings;
  sets.insert(sets.end(), choice.settings.begin(), choice.settings.end());
  return sets;
}

Cell GridSession::cell(std::size_t arm, const std::vector<std::string>& sets, std::int64_t seed) {
  const bool tuning = seed == kTuningSeed;
  const auto& name = grid().arms[arm].name;
  return {.arm = name,
          .run = base_.trainedRun(sets, seed),
          .settings = settingsOf(sets),
          .seed = seed,
          .tuning = tuning,
          .testEvery = grid().testEvery,
          .curves = tuning ? "" : curvesFile(out_, name, seed)};
}

const RunRecord* GridSession::result(const std::vector<std::string>& sets, std::int64_t seed) {
  return results_.find(settingsOf(sets), seed);
}

std::optional<muster::TunedArm> GridSession::tunedArm(std::size_t arm) {
  std::vector<const RunRecord*> runs;
  for (const auto& choice : choices_[arm]) runs.push_back(result(tuningSets(arm, choice), kTuningSeed));
  if (runs.empty() || std::ranges::find(runs, nullptr) != runs.end()) return std::nullopt;
  return muster::chooseTuning(grid().arms[arm].name, choices_[arm], runs);
}

std::optional<std::vector<std::string>> GridSession::chosenSets(std::size_t arm) {
  if (choices_[arm].empty()) return grid().arms[arm].settings;
  const auto tuned = tunedArm(arm);
  if (!tuned) return std::nullopt;
  return tuningSets(arm, tuned->choices[tuned->best]);
}

void GridSession::refresh(muster::Comparison& comparison) {
  comparison.grid = grid();
  comparison.runs.assign(grid().arms.size(), {});
  comparison.tuned.clear();
  for (std::size_t arm = 0; arm < grid().arms.size(); ++arm) {
    if (auto tuned = tunedArm(arm))
      comparison.tuned.push_back(std::move(*tuned));
    else if (!grid().tune.empty() && choices_[arm].empty())  // it is named as one that was not tuned
      comparison.tuned.push_back({.arm = grid().arms[arm].name, .choices = {}, .losses = {}});
    const auto sets = chosenSets(arm);
    if (!sets) continue;
    for (const auto seed : grid().seeds)
      if (const auto* run = result(*sets, seed)) comparison.runs[arm].push_back(*run);
  }
}

void GridSession::requireDifferent() {
  std::map<std::vector<std::string>, std::string> trainings;
  std::map<std::filesystem::path, std::string> files;
  for (const auto& arm : grid().arms) {
    const auto [same, added] = trainings.emplace(settingsOf(arm.settings), arm.name);
    require(added, "the arms \"{}\" and \"{}\" are the same training", same->second, arm.name);
    const auto [file, other] = files.emplace(curvesFile("", arm.name, 1), arm.name);
    require(other, "the arms \"{}\" and \"{}\" need names that differ by letters or digits", file->second,
            arm.name);
  }
}

}  // namespace comparing
