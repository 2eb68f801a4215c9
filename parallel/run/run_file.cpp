#include "muster/parallel/run/run_file.h"

#include <boost/json.hpp>
#include <cctype>

#include "muster/core/base/error.h"
#include "muster/core/io/json_value.h"
#include "muster/core/io/safetensors.h"
#include "muster/datasets/file_bytes.h"
#include "muster/parallel/run/detail/comparison_fields.h"
#include "muster/parallel/run/detail/override_error.h"
#include "muster/parallel/run/detail/run_checks.h"
#include "muster/parallel/run/detail/run_fields.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/run/detail/saved_run.h"
#include "muster/parallel/run/named_networks.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace muster {
namespace {

namespace json = boost::json;

/// An option's value in the form of `RunTraining::strategyOptions`.
std::string optionText(const std::string& name, const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_bool()) return value.get_bool() ? "true" : "false";
  if (value.is_int64()) return fmt::format("{}", value.get_int64());
  if (value.is_uint64()) return fmt::format("{}", value.get_uint64());
  if (value.is_double()) return fmt::format("{}", value.get_double());
  if (const auto* array = value.if_array()) {
    std::string all;
    for (const auto& one : *array) all.append(all.empty() ? "" : ",").append(optionText(name, one));
    return all;
  }
  throw InvalidArgument(fmt::format("{}{}: expected a number, a word, true or false, found {}",
                                    detail::kStrategyPath, name, describeJson(value)));
}

/// Takes `training.strategy` from a run file.
void readStrategy(const json::object& run, RunTraining& training) {
  const json::value* const inside = run.if_contains("training");
  const json::value* const strategy =
      inside && inside->is_object() ? inside->get_object().if_contains("strategy") : nullptr;
  if (strategy == nullptr) return;
  if (strategy->is_string()) {
    training.strategy = strategy->get_string();
    return;
  }
  require(strategy->is_object(),
          "training.strategy: expected an object as in {{\"name\": \"diloco\"}}, found {}",
          describeJson(*strategy));
  for (const auto& [key, value] : strategy->get_object()) {
    const auto option = optionText(std::string(key), value);
    if (key == "name")
      training.strategy = option;
    else
      training.strategyOptions +=
          fmt::format("{}{}={}", training.strategyOptions.empty() ? "" : ",", std::string_view(key), option);
  }
}

/// Rejects NUL bytes: most texts are paths, and the system ends a path at its first NUL.
void refuseNul(const json::value& value, const std::string& path) {
  const auto check = [](std::string_view text, const std::string& where) {
    require(text.find('\0') == text.npos, "{}: expected a text without NUL bytes, found {}", where,
            quoteJson(text));
  };
  if (const auto* text = value.if_string()) check(*text, path);
  if (const auto* object = value.if_object())
    for (const auto& [key, inside] : *object) {
      check(key, fmt::format("a field in {}", path.empty() ? "the run file" : path));
      refuseNul(inside, path.empty() ? std::string(key) : fmt::format("{}.{}", path, std::string_view(key)));
    }
  if (const auto* array = value.if_array())
    for (std::size_t i = 0; i < array->size(); ++i) refuseNul((*array)[i], fmt::format("{}[{}]", path, i));
}

}  // namespace

namespace detail {

void visitStrategy(JsonReader& reader, RunTraining&) {
  reader.json("strategy");  // `readStrategy` reads it
}

void visitStrategy(JsonWriter& writer, RunTraining& training) {
  writer.group("strategy", [&](JsonWriter& in) {
    in.put("name", std::string_view(training.strategy));
    const auto strategy =
        strategyNamed(training.strategy, training.strategyOptions, static_cast<int>(training.workers));
    for (const auto& option : optionsOf(strategy)) {
      const auto value = detail::jsonOrWord(option.preset);
      if (option.kind == "whole number" && value.is_int64())
        in.put(option.name, value.get_int64());
      else if (option.kind.ends_with("number") && value.is_number())
        in.put(option.name, value.to_number<double>());
      else if (value.is_bool())
        in.put(option.name, value.get_bool());
      else
        in.put(option.name, std::string_view(option.preset));
    }
  });
}

}  // namespace detail

namespace {

/// A run that a file or a model has; errors do not say which of the two causes, text or override, is to
/// blame.
RunFile readRun(std::string_view text, std::span<const std::string> overrides) {
  require(text.find_first_not_of(" \t\r\n") != text.npos, "it is empty; a run file has data and a network");
  json::value value = parseJson(text);
  require(value.is_object(), "expected a JSON object, found {}", describeJson(value));
  if (auto* const result = value.get_object().if_contains("configuration");
      result != nullptr && result->is_object() && !value.get_object().contains("format"))
    value = json::value(*result);
  detail::applyOverrides(value.get_object(), overrides);
  detail::expandShortForms(value.get_object());
  refuseNul(value, "");
  value.get_object().erase("$schema");  // for editors

  JsonReader reader(printJson(value));
  for (const auto* const name : {"format", "data", "network"}) reader.requireField(name);
  std::string format;
  reader.field("format", format);
  require(format == RunFile::kFormat, "format: this program reads \"{}\", found \"{}\"", RunFile::kFormat,
          format);
  RunFile run;
  reader.group("data", [&](JsonReader& in) { detail::visitData(in, run.data); });
  run.network = *reader.json("network");
  reader.group("training", [&](JsonReader& in) { detail::visitTraining(in, run.training); });
  reader.group("listeners", [&](JsonReader& in) { detail::visitListeners(in, run.listeners); });
  detail::RunComparison comparison;  // which muster compare reads
  reader.group("compare", [&](JsonReader& in) { detail::visitComparison(in, comparison); });
  reader.finish();
  detail::checkComparison(comparison);
  readStrategy(value.get_object(), run.training);
  detail::checkRun(run);
  if (isNamedNetwork(run.network)) run.network = withAllOptions(run.network);
  return run;
}

/// As readRun, for a run to begin.
RunFile readNewRun(std::string_view text, std::span<const std::string> overrides) {
  auto run = readRun(text, overrides);
  if (run.training.resume.empty()) detail::checkNewRun(run);
  return run;
}

/// Whether a problem has this path, or that of a field inside.
bool namesPath(std::string_view problem, std::string_view path) {
  for (auto at = problem.find(path); at != problem.npos; at = problem.find(path, at + 1))
    if (const auto end = at + path.size();
        end == problem.size() || std::isalnum(static_cast<unsigned char>(problem[end])) == 0)
      return true;
  return false;
}

/// The override to blame for a problem: the last one whose path the problem names, or if there is none and
/// the text alone is valid, the last one. An override without which there is another problem precedes the
/// others. Nothing if the text is to blame.
std::optional<std::size_t> blamedOverride(std::string_view text, std::span<const std::string> overrides,
                                          std::string_view problem) {
  const auto problemWith = [&](std::span<const std::string> some) -> std::string {
    try {
      readNewRun(text, some);
      return {};
    } catch (const InvalidArgument& error) {
      return error.what();
    }
  };
  const auto ofText = problemWith({});
  if (overrides.empty() || ofText == problem) return {};
  std::optional<std::size_t> blamed;
  int most = ofText.empty() ? 0 : 2;  // a mistake of the text may hide another one of an override
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    std::vector<std::string> others(overrides.begin(), overrides.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const int guilt = 2 * namesPath(problem, detail::keyOf(overrides[i])) + (problemWith(others) != problem);
    if (guilt < most) continue;
    blamed = i;
    most = guilt;
  }
  return blamed;
}

}  // namespace

RunFile detail::savedRun(std::string_view text) {
  return readRun(text, {});
}

RunFile RunFile::parse(std::string_view text, std::span<const std::string> overrides) try {
  return readNewRun(text, overrides);
} catch (const InvalidArgument& error) {
  if (const auto one = blamedOverride(text, overrides, error.what()))
    throw detail::OverrideError(*one, error.what());
  throw;
}

RunFile RunFile::read(const std::filesystem::path& file, std::span<const std::string> overrides) {
  const auto path = file.string();
  const auto bytes = readFile(file);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  require(!path.ends_with(".safetensors") && !isSafetensors(text),
          "{}: is a model file; give the run file, whose training.model names the model", path);
  require(!path.ends_with(".csv"), "{}: is a data file, not a run file; muster example {} prints one for it",
          path, path);
  try {
    return parse(text, overrides);
  } catch (const detail::OverrideError&) {
    throw;  // the file is not to blame
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", path, error.what()));
  }
}

void RunFile::write(JsonWriter& writer) const {
  RunFile copy = *this;  // visits need mutable references
  writer.put("format", kFormat);
  writer.group("data", [&](JsonWriter& in) { detail::visitData(in, copy.data); });
  writer.putJson("network", network);
  writer.group("training", [&](JsonWriter& in) { detail::visitTraining(in, copy.training); });
  writer.group("listeners", [&](JsonWriter& in) { detail::visitListeners(in, copy.listeners); });
}

std::string RunFile::toJson() const {
  JsonWriter writer;
  write(writer);
  return writer.text();
}

AnyStrategy RunFile::makeStrategy(int nodes) const {
  const int workers = static_cast<int>(training.workers) * nodes;
  try {
    strategyNamed(training.strategy, "", workers);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("training.strategy.name: {}", error.what()));
  }
  try {
    return strategyNamed(training.strategy, training.strategyOptions, workers);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(
        detail::strategyProblem(error.what(), strategyNamed(training.strategy, "", workers)));
  }
}

}  // namespace muster
