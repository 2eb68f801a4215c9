#include "muster/parallel/run/detail/run_settings.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "muster/core/io/json_value.h"
#include "muster/core/io/network_json.h"
#include "muster/parallel/run/detail/run_fields.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/run/named_networks.h"

namespace muster::detail {
namespace {

namespace json = boost::json;

/// Lists every plain value with its path.
void flatten(const json::value& value, const std::string& path, RunSettings& into) {
  if (const auto* object = value.if_object())
    for (const auto& [key, inside] : *object)
      flatten(inside, path.empty() ? std::string(key) : fmt::format("{}.{}", path, std::string_view(key)),
              into);
  else if (const auto* array = value.if_array(); array && !array->empty() && array->front().is_object())
    for (std::size_t i = 0; i < array->size(); ++i)
      flatten((*array)[i], fmt::format("{}[{}]", path, i), into);
  else
    into.emplace_back(path, printJsonLine(value));
}

/// The run with all defaults in full, and each field that may say the same in two ways in one of them.
RunFile normalised(RunFile run) {
  if (!isNamedNetwork(run.network)) run.network = networkFromJson(run.network)->toJson();
  if (run.data.splitSeed == run.data.seed) run.data.splitSeed = -1;
  auto& l = run.listeners;
  for (auto* const monitored : {l.earlyStopping ? &l.earlyStopping->monitored : nullptr,
                                l.reduceOnPlateau ? &l.reduceOnPlateau->monitored : nullptr})
    if (const auto mode = monitored ? modeOf(monitored->monitor) : std::nullopt)
      monitored->mode = nameOf(*mode);
  return run;
}

}  // namespace

std::optional<MathMode> mathModeOf(const RunTraining& training) {
  if (training.mathMode == "auto") return {};
  return valueNamed<MathMode>("training.mathMode", training.mathMode);
}

RunSettings fieldsOf(const RunFile& run) {
  RunSettings all;
  flatten(parseJson(normalised(run).toJson()), "", all);
  return all;
}

RunSettings decisiveFields(const RunFile& run) {
  auto all = fieldsOf(run);
  std::erase_if(all, [](const auto& field) {
    const auto& [path, value] = field;
    if (path.starts_with("data.directory") || path.starts_with("listeners."))
      return !path.starts_with("listeners.reduceOnPlateau");  // the others only watch
    if (!path.starts_with("training.")) return path == "format";
    return !isOneOf(path, {"training.workers", "training.threadsPerWorker", "training.groups",
                           "training.mathMode"}) &&
           !path.starts_with(kStrategyPath);
  });
  return all;
}

bool mayDiffer(std::string_view path) {
  return isOneOf(path, {"training.workers", "training.threadsPerWorker", "training.groups"});
}

}  // namespace muster::detail
