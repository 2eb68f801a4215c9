// How the schema of run files describes strategies: each with its options, and theirs.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/io/detail/schema_writer.h"
#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/run_fields.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace muster {

namespace json = boost::json;

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
  detail::setRange(schema, option.range);
  return schema;
}

using Schemas = std::vector<std::pair<std::string, json::object>>;  // by the names of options

Schemas::iterator placeOf(std::string_view option, Schemas& all) {
  return std::ranges::find(all, option, &Schemas::value_type::first);
}

/// The options that a strategy has where some are given; nothing if it refuses these.
std::optional<std::vector<StrategyOption>> optionsWith(const NamedStrategy& strategy, int workers,
                                                       const std::string& given) {
  try {
    return optionsOf(strategyNamed(strategy.name, given, workers));
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

/// Takes the words out of an option's schema that the strategy refuses.
void keepAccepted(const NamedStrategy& strategy, int workers, const std::string& option,
                  json::object& schema) {
  auto* const words = schema.if_contains("enum");
  if (!words) return;
  json::array kept;
  for (const auto& word : words->as_array())
    if (optionsWith(strategy, workers, fmt::format("{}={}", option, std::string_view(word.get_string()))))
      kept.push_back(word);
  *words = std::move(kept);
}

/// An object's field is one of these words, which is its default where it is left out.
json::object oneOf(std::string_view field, json::array words, const json::value& preset) {
  json::object is;
  if (std::ranges::find(words, preset) == words.end()) is["required"] = json::array{field};
  is["properties"] = json::object{{field, json::object{{"enum", std::move(words)}}}};
  return is;
}

/// A type of an option that a strategy takes.
struct TakenType {
  std::vector<StrategyOption> options;  // that the strategy has with it
  json::object needs;                   // of its other options; empty: nothing
};

/// Tries a type with the other options' defaults and with each word that one of them may be.
/// @param given  as in "codec=int8". @return nothing if the strategy takes the type with none of these.
std::optional<TakenType> takenType(const NamedStrategy& strategy, int workers, const std::string& given,
                                   const Schemas& all) {
  auto options = optionsWith(strategy, workers, given);
  json::array needs;
  const char* const needed = options ? "allOf" : "anyOf";
  for (const auto& [other, schema] : all) {
    const auto* const words = schema.if_contains("enum");
    if (!words || given.starts_with(other + "=")) continue;
    json::array fitting;
    for (const auto& word : words->as_array()) {
      auto found = optionsWith(strategy, workers,
                               fmt::format("{},{}={}", given, other, std::string_view(word.get_string())));
      if (!found) continue;
      fitting.push_back(word);
      if (!options) options = std::move(found);
    }
    if (!fitting.empty() && fitting.size() < words->as_array().size())
      needs.push_back(oneOf(other, std::move(fitting), schema.at("default")));
  }
  if (!options) return std::nullopt;
  return TakenType{*options, needs.empty() ? json::object() : json::object{{needed, std::move(needs)}}};
}

/// Adds the options that a strategy has with another type of one of them, such as a codec, and what these
/// need, that the other one has such a type, and what the types need, such as a graph.
void addOptionsOfTypes(const NamedStrategy& strategy, int workers, std::string_view option,
                       std::string_view types, Schemas& all, json::object& needs) {
  const json::value preset = placeOf(option, all)->second.at("default");
  json::array taken, rules;
  std::map<std::string, json::array> typesOf;  // [option within this one]
  for (const auto& type : wordsIn(types)) {
    const std::string_view word = type.get_string();
    auto with = takenType(strategy, workers, fmt::format("{}={}", option, word), all);
    if (!with) continue;
    for (auto& other : with->options) {
      if (other.name.starts_with(fmt::format("{}.", option))) typesOf[other.name].push_back(type);
      if (placeOf(other.name, all) != all.end()) continue;
      other.description = fmt::format("of {}: {}", word, other.description);
      all.insert(placeOf(option, all) + 1, {other.name, schemaOf(other)});
    }
    if (!with->needs.empty())
      rules.push_back({{"if", {{"properties", {{option, {{"const", type}}}}}}}, {"then", with->needs}});
    taken.push_back(type);
  }
  for (const auto& [inside, those] : typesOf)
    if (those.size() < taken.size()) needs[inside] = oneOf(option, those, preset);
  if (!rules.empty()) needs[option] = json::object{{"allOf", std::move(rules)}};
  placeOf(option, all)->second["enum"] = std::move(taken);
}

/// The schema of a strategy with its options.
json::object schemaOf(const NamedStrategy& strategy, int workers) {
  Schemas all;
  json::object needs, options{{"name", json::object()}};
  for (const auto& option : optionsOf(strategy.options)) all.emplace_back(option.name, schemaOf(option));
  for (auto& [option, schema] : all) keepAccepted(strategy, workers, option, schema);
  for (const auto& [option, types] : kTypes)
    if (placeOf(option, all) != all.end()) addOptionsOfTypes(strategy, workers, option, types, all, needs);
  for (auto& [name, schema] : all) options[name] = std::move(schema);
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
