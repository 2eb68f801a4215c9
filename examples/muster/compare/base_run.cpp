#include "examples/muster/compare/base_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "examples/muster/run_options.h"
#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/override_error.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/run/detail/run_settings.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace comparing {
namespace {

using muster::InvalidArgument;

/// Where short names are looked up, in this order.
constexpr std::string_view kGroups[] = {"training.", "data.", "network.updater.", "network."};

/// Whether a field decides a run's results.
bool decides(std::string_view path) {
  if (path.starts_with("listeners.") && !path.starts_with("listeners.reduceOnPlateau") &&
      !path.starts_with("listeners.earlyStopping"))
    return false;
  constexpr std::string_view kOthers[] = {"format",
                                          "data.directory",
                                          "listeners.earlyStopping.bestFile",
                                          "training.prefetch",
                                          "training.pinThreads",
                                          "training.reportScore",
                                          "training.placement",
                                          "training.nodes",
                                          "training.resume",
                                          "training.model"};
  return std::ranges::find(kOthers, path) == std::ranges::end(kOthers);
}

/// Whether a path is `field`, or a field of an object of that name.
bool isOrIsIn(std::string_view path, std::string_view field) {
  return path.starts_with(field) && (path.size() == field.size() || path[field.size()] == '.');
}

/// As a run file lists them.
std::string listOf(std::span<const muster::Device> devices) {
  std::vector<std::string> names;
  for (const auto device : devices) names.push_back(device.toString());
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace

BaseRun::BaseRun(std::string path, std::string text, std::vector<std::string> sets)
    : path_(std::move(path)), text_(std::move(text)), sets_(std::move(sets)) {}

void BaseRun::setDevices(std::span<const muster::Device> devices) {
  set("training.devices=" + muster::quoteJson(listOf(devices)));
}

void BaseRun::setUnasked(std::span<const muster::Device> devices) {
  unasked_ = listOf(devices);
}

muster::RunFile BaseRun::run(const std::vector<std::string>& sets, std::int64_t seed) const try {
  auto all = sets_;
  const auto file = muster::RunFile::parse(text_, all);
  all.insert(all.end(), sets.begin(), sets.end());
  all.push_back(fmt::format("network.seed={}", seed));
  all.push_back(
      fmt::format("data.splitSeed={}", file.data.splitSeed < 0 ? file.data.seed : file.data.splitSeed));
  all.push_back(fmt::format("data.seed={}", seed));
  return muster::RunFile::parse(text_, all);
} catch (const muster::detail::OverrideError& error) {
  const program::FieldChoices own{.byOption = {}, .options = {}, .sets = sets_};
  if (error.index() < sets_.size()) throw InvalidArgument(own.problemOf(error.index(), error.what()));
  throw InvalidArgument(error.what());
} catch (const InvalidArgument& error) {
  throw InvalidArgument(fmt::format("{}: {}", path_, error.what()));
}

muster::RunFile BaseRun::trainedRun(const std::vector<std::string>& sets, std::int64_t seed) const {
  auto run = this->run(sets, seed);
  if (run.training.devices == "auto" && !unasked_.empty()) run.training.devices = unasked_;
  return run;
}

std::map<std::string, std::string> BaseRun::settings(const muster::RunFile& run) const {
  std::map<std::string, std::string> settings;
  for (auto& [path, value] : muster::detail::fieldsOf(run))
    if (decides(path)) settings.emplace(std::move(path), std::move(value));
  return settings;
}

std::vector<std::string> BaseRun::differences(const muster::RunFile& other, std::int64_t seed) const {
  const auto base = settings(run({}, seed)), own = settings(other);
  std::vector<std::string> all;
  for (const auto& [path, value] : own)
    if (const auto found = base.find(path); found == base.end() || found->second != value)
      all.push_back(fmt::format("{}={}", path, value));
  for (const auto& [path, value] : base)
    if (!own.contains(path) && !path.starts_with(muster::detail::kStrategyPath)) all.push_back(path + "=");
  std::ranges::sort(all);
  return all;
}

std::string BaseRun::pathOf(std::string_view name, std::string_view strategy) const {
  const auto file = run();
  std::vector<std::string> known;
  const auto workers = static_cast<int>(file.training.workers);
  for (const auto& option : muster::optionsOf(muster::strategyNamed(strategy, "", workers))) {
    if (isOrIsIn(name, option.name)) return fmt::format("{}{}", muster::detail::kStrategyPath, name);
    known.push_back(option.name);
  }
  const auto head = name.substr(0, name.find_first_of(".["));
  const bool whole = head == "data" || head == "network" || head == "training" || head == "listeners";
  if (whole && head.size() < name.size()) return std::string(name);
  const auto fields = muster::detail::fieldsOf(file);
  for (const auto group : kGroups)
    for (const auto& [path, value] : fields) {
      if (isOrIsIn(path, fmt::format("{}{}", group, name))) return fmt::format("{}{}", group, name);
      if (path.starts_with(group) && path.find_first_of(".[", group.size()) == path.npos)
        known.push_back(path.substr(group.size()));
    }
  throw InvalidArgument(
      fmt::format("there is no field and no option of {} called \"{}\"{}; a field further inside has its "
                  "path, as in network.layers[0].units",
                  strategy, name, muster::nearestHint(name, known)));
}

}  // namespace comparing
