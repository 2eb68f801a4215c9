#include "muster/parallel/run/run_schema.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/io/detail/network_schema.h"
#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/comparison_fields.h"
#include "muster/parallel/run/detail/named_network_schemas.h"
#include "muster/parallel/run/detail/run_fields.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/run/named_networks.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace muster {

namespace json = boost::json;
using detail::NetworkSchema, detail::SchemaWriter;

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

/// Lets an object also be a value of the field for which that may stand.
void allowShortForm(json::object& schema, const detail::ShortForm& form) {
  json::object* at = &schema;
  for (std::string_view rest = form.path; !rest.empty();) {
    const auto dot = std::min(rest.find('.'), rest.size());
    at = &at->at("properties").as_object().at(rest.substr(0, dot)).as_object();
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  const auto& field = at->at("properties").as_object().at(form.field).as_object();
  const auto* const type = field.if_contains("type");
  at->at("type") = json::array{"object", type ? *type : json::value("string")};
}

/// The schema of an option that is a text: a number or none, or numbers and words with commas, which a file
/// also has as a list.
json::object schemaOfText(const json::value& preset) {
  if (preset.is_number() || preset == "none") return {{"type", json::array{"number", "string"}}};
  return {{"type", json::array{"string", "number", "array"}},
          {"items", json::object{{"type", json::array{"number", "string"}}}}};
}

/// The types of options that have options of their own.
struct OptionTypes {
  std::string_view option;
  std::vector<std::string_view> types;
};

const std::vector<OptionTypes>& optionTypes() {
  static const std::vector<OptionTypes> all{
      {"period", {"fixed", "qsr", "adacomm"}},
      {"codec", {"whole", "bf16", "int8", "e3m0", "top-k", "power-sgd"}},
      {"landing", {"delta", "pull", "eager"}},
      {"threshold", {"fixed", "adaptive", "target"}}};
  return all;
}

json::object schemaOf(const StrategyOption& option) {
  const auto preset = detail::jsonOrWord(option.preset);
  json::object schema = option.kind == "text" ? schemaOfText(preset) : json::object();
  schema["description"] = option.description;
  schema["default"] = preset;
  if (option.kind == "number") schema["type"] = "number";
  if (option.kind == "whole number") schema["type"] = "integer";
  if (option.kind == "true or false") schema["type"] = "boolean";
  auto words = wordsIn(option.kind);
  for (const auto& [name, types] : optionTypes())
    if (name == option.name) words = json::array(types.begin(), types.end());
  if (!words.empty()) schema["enum"] = std::move(words);
  return schema;
}

/// The strategy's options, and those that it has with another type of one of them, such as a codec.
std::vector<StrategyOption> allOptionsOf(const NamedStrategy& strategy, int workers) {
  auto all = optionsOf(strategy.options);
  const auto placeOf = [&](std::string_view name) {
    return std::ranges::find(all, name, &StrategyOption::name);
  };
  for (const auto& [option, types] : optionTypes()) {
    if (placeOf(option) == all.end()) continue;
    for (const auto type : types) try {
        const auto set = fmt::format("{}={}", option, type);
        for (auto& other : optionsOf(strategyNamed(strategy.name, set, workers)))
          if (placeOf(other.name) == all.end()) {
            other.description = fmt::format("of {}: {}", type, other.description);
            all.insert(placeOf(option) + 1, std::move(other));
          }
      } catch (const InvalidArgument&) {
        continue;  // the strategy does not take this type
      }
  }
  return all;
}

}  // namespace

namespace detail {

/// The options of each strategy are properties where its name is given, and those of averaging without a
/// name.
void visitStrategy(SchemaWriter& writer, RunTraining& training) {
  json::array names, rules;
  const int workers = static_cast<int>(training.workers);
  for (const auto& strategy : namedStrategies(workers)) {
    names.emplace_back(strategy.name);
    json::object options{{"name", json::object()}};
    for (const auto& option : allOptionsOf(strategy, workers)) options[option.name] = schemaOf(option);
    const json::object named{{"name", json::object{{"const", strategy.name}}}};
    json::object is{{"properties", named}};
    if (strategy.name != training.strategy) is["required"] = json::array{"name"};
    rules.push_back(json::object{{"if", is},
                                 {"then", json::object{{"description", strategy.description},
                                                       {"properties", options},
                                                       {"additionalProperties", false}}}});
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
                                                json::object{{"type", "integer"}}}}});
}

}  // namespace detail

namespace {

/// The fields of `data`: the schema allows those of all types, and the program checks which ones a type has.
json::object dataSchema() {
  SchemaWriter data;
  std::map<std::string, std::vector<std::string_view>, std::less<>> typesOf;  // [field]
  json::array types;
  for (const auto type : kDataTypes) {
    types.emplace_back(type);
    DataSource of;
    of.type = type;
    detail::visitData(data, of);
    SchemaWriter alone;
    detail::visitData(alone, of);
    for (const auto& [field, schema] : alone.properties()) typesOf[field].push_back(type);
  }
  data.describe("where the data come from");
  data.put("type", {{"enum", types}});  // has no default
  json::object all = data.schema();
  for (const auto& [field, of] : typesOf)
    if (auto& schema = all.at("properties").at(field).as_object(); of.size() < kDataTypes.size())
      schema["description"] = fmt::format("of {}: {}", fmt::join(of, ", "),
                                          std::string_view(schema.at("description").as_string()));
  all.at("properties").at("classWeights").as_object()["default"] = json::array();
  all["required"] = json::array{"type"};
  return all;
}

json::object networkField(const NetworkSchema& network) {
  json::array networks{network.network};
  for (auto& named : detail::namedNetworkSchemas(network.families)) networks.push_back(std::move(named));
  return {{"description", "a network of the library by its name, with options, or a configuration in full"},
          {"anyOf", std::move(networks)}};
}

void describeParts(SchemaWriter& all, const NetworkSchema& network) {
  all.put("$schema", {{"type", "string"}, {"description", "where this schema is, for editors"}});
  all.put("format", {{"const", RunFile::kFormat}, {"description", "of the file"}});
  all.describe("what the network learns from");
  all.put("data", dataSchema());
  all.put("network", networkField(network));
  RunTraining training;
  all.describe("how it is trained, and by how many workers");
  all.group("training", [&](SchemaWriter& in) { detail::visitTraining(in, training); });
  RunListeners listeners;
  all.describe("what is shown and saved on the way, and what ends the training");
  all.group("listeners", [&](SchemaWriter& in) { detail::visitListeners(in, listeners); });
  detail::RunComparison comparison;
  all.describe("defaults of the options of muster compare");
  all.group("compare", [&](SchemaWriter& in) { detail::visitComparison(in, comparison); });
}

}  // namespace

std::string runFileSchema() {
  const auto network = detail::networkSchema();
  SchemaWriter all;
  describeParts(all, network);
  json::object schema = all.schema();
  for (const auto& form : detail::kShortForms)
    if (form.path != "training.strategy") allowShortForm(schema, form);
  for (const auto* const counted :
       {"/data/properties/batch", "/training/properties/workers", "/training/properties/epochs",
        "/training/properties/threadsPerWorker", "/training/properties/groups"})
    schema.at("properties").at_pointer(counted).as_object()["minimum"] = 1;
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "muster run file";
  schema["required"] = json::array{"format", "data", "network"};
  schema["$defs"] = network.definitions;
  return printJson(schema);
}

}  // namespace muster
