// How the schema of run files describes strategies: each with its options, and theirs.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/field_ranges.h"
#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/run_fields.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace muster {

namespace json = boost::json;
using detail::FieldRange;

namespace {

/// The words of a kind such as "average, keep or reset"; none of another kind.
json::array wordsIn(std::string_view kind) {
  json::array words;
  const auto last = kind.find(" or ");
  if (last == kind.npos || kind == "true or false") return words;
  for (std::size_t at = 0; at < last;) {
    const auto end = std::min(kind.find(", ", at), last);
    words.emplace_back(kind.substr(at, end - at));
    at = end + 2;
  }
  words.emplace_back(kind.substr(last + 4));
  return words;
}

/// The types of options that have options of their own.
constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {"period", "fixed, qsr or adacomm"},
    {"codec", "whole, bf16, int8, e3m0, top-k or power-sgd"},
    {"landing", "delta, pull or eager"},
    {"threshold", "fixed, adaptive or target"}};

/// Options that are texts, and the schemas of their values.
constexpr std::pair<std::string_view, std::string_view> kTexts[] = {
    {"elasticity", R"({"type": ["number", "string"], "pattern": "^(none|[-+.0-9eE]+)$"})"},
    {"staleness", R"({"type": ["integer", "string"], "pattern": "^(none|[0-9]+)$"})"},
    {"speeds", R"({"type": ["string", "number", "array"], "pattern": "^(equal|[-+.,0-9eE]+)$",
                   "items": {"type": "number"}, "minItems": 1})"},
    {"levels", R"({"type": ["string", "array"], "items": {"type": "string"},
                   "pattern": "^[0-9]+:([0-9]+|all)(,[0-9]+:([0-9]+|all))*$"})"}};

constexpr std::string_view kShare = "(0, 1]", kIterations = "[1, 1099511627776]";

constexpr FieldRange kRanges[] = {{"every", kIterations},
                                  {"period.alpha", "[0, )"},
                                  {"period.power", "(0, )"},
                                  {"period.interval", kIterations},
                                  {"period.shrink", kShare},
                                  {"period.until", "[0, )"},
                                  {"period.untilEpoch", "[0, )"},
                                  {"period.first", kIterations},
                                  {"codec.rank", "[1, 32]"},
                                  {"codec.share", kShare},
                                  {"rate", "(0, )"},
                                  {"momentum", "[0, 1)"},
                                  {"arrivalsPerStep", "[0, )"},
                                  {"speeds", "[1e-6, 1e6]"},
                                  {"staleness", "[0, )"},
                                  {"grace", "[0, )"},
                                  {"centreRate", "[0, 1]"},
                                  {"elasticity", "[0, 1]"},
                                  {"delay", "[0, )"},
                                  {"landing.strength", "[0, 1]"},
                                  {"fragments", "[1, 64]"},
                                  {"mixing", "[0, 1]"},
                                  {"modelEvery", "[1, )"},
                                  {"threshold.threshold", "[1e-30, 1e30]"},
                                  {"threshold.initial", "[1e-30, 1e30]"},
                                  {"threshold.density", kShare},
                                  {"threshold.minDensity", kShare},
                                  {"threshold.maxDensity", kShare},
                                  {"threshold.decay", "(0, 1)"},
                                  {"residualClipping", "[0, 1e6]"},
                                  {"residualClippingFrequency", "[1, )"},
                                  {"resynchronizationFrequency", "[0, )"}};

json::object schemaOf(const StrategyOption& option) {
  json::object schema;
  for (const auto& [name, text] : kTexts)
    if (name == option.name) schema = parseJson(text).as_object();
  schema["description"] = option.description;
  schema["default"] = detail::jsonOrWord(option.preset);
  if (option.kind == "number") schema["type"] = "number";
  if (option.kind == "whole number") schema["type"] = "integer";
  if (option.kind == "true or false") schema["type"] = "boolean";
  if (auto words = wordsIn(option.kind); !words.empty()) schema["enum"] = std::move(words);
  return schema;
}

using Schemas = std::vector<std::pair<std::string, json::object>>;  // by the names of options

Schemas::iterator placeOf(std::string_view option, Schemas& all) {
  return std::ranges::find(all, option, &Schemas::value_type::first);
}

/// Adds the options that a strategy has with another type of one of them, such as a codec, and what these
/// need: that the other one has such a type.
void addOptionsOfTypes(const NamedStrategy& strategy, int workers, std::string_view option,
                       std::string_view types, Schemas& all, json::object& needs) {
  const json::value preset = placeOf(option, all)->second.at("default");
  json::array taken;
  std::map<std::string, json::array> typesOf;  // [option within this one]
  for (const auto& type : wordsIn(types)) try {
      const std::string_view word = type.get_string();
      for (auto& other :
           optionsOf(strategyNamed(strategy.name, fmt::format("{}={}", option, word), workers))) {
        if (other.name.starts_with(fmt::format("{}.", option))) typesOf[other.name].push_back(type);
        if (placeOf(other.name, all) != all.end()) continue;
        other.description = fmt::format("of {}: {}", word, other.description);
        all.insert(placeOf(option, all) + 1, {other.name, schemaOf(other)});
      }
      taken.push_back(type);
    } catch (const InvalidArgument&) {
      continue;  // the strategy does not take this type
    }
  for (const auto& [inside, those] : typesOf) {
    if (those.size() == taken.size()) continue;
    json::object need{{"properties", json::object{{option, json::object{{"enum", those}}}}}};
    if (std::ranges::find(those, preset) == those.end()) need["required"] = json::array{option};
    needs[inside] = std::move(need);
  }
  placeOf(option, all)->second["enum"] = std::move(taken);
}

/// The schema of a strategy with its options.
json::object schemaOf(const NamedStrategy& strategy, int workers) {
  Schemas all;
  json::object needs, options{{"name", json::object()}};
  for (const auto& option : optionsOf(strategy.options)) all.emplace_back(option.name, schemaOf(option));
  for (const auto& [option, types] : kTypes)
    if (placeOf(option, all) != all.end()) addOptionsOfTypes(strategy, workers, option, types, all, needs);
  for (auto& [name, schema] : all) options[name] = std::move(schema);
  detail::setRanges(options, strategy.name, kRanges);
  return {{"description", strategy.description},
          {"properties", std::move(options)},
          {"dependentSchemas", std::move(needs)},
          {"additionalProperties", false}};
}

}  // namespace

/// The options of each strategy are properties where its name is given, and those of averaging without a
/// name.
void detail::visitStrategy(SchemaWriter& writer, RunTraining& training) {
  json::array names, rules;
  const int workers = static_cast<int>(training.workers);
  for (const auto& strategy : namedStrategies(workers)) {
    names.emplace_back(strategy.name);
    const json::object named{{"name", json::object{{"const", strategy.name}}}};
    json::object is{{"properties", named}};
    if (strategy.name != training.strategy) is["required"] = json::array{"name"};
    rules.push_back(json::object{{"if", is}, {"then", schemaOf(strategy, workers)}});
  }
  const json::object withOptions{
      {"type", "object"},
      {"properties", json::object{{"name", json::object{{"enum", names}, {"description", "the rule"}}}}},
      {"allOf", rules}};
  writer.put("strategy", {{"default", training.strategy},
                          {"description",
                           "a name, a name and options, or a number: averaging every so many iterations; "
                           "muster strategies lists them"},
                          {"anyOf", json::array{withOptions, json::object{{"enum", names}},
                                                json::object{{"type", "integer"}, {"minimum", 1}}}}});
}

}  // namespace muster
