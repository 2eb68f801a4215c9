#include "examples/muster/schema.h"

#include <boost/json/array.hpp>

#include "examples/muster/run_fields.h"
#include "muster/core/io/detail/json_value.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace program {

namespace json = boost::json;

void SchemaWriter::field(std::string_view name, muster::Shape&) {
  properties_[name] = json::object{{"type", "array"}, {"items", json::object{{"type", "integer"}}}};
}

void SchemaWriter::choice(std::string_view name, std::size_t&, std::span<const std::string_view> names) {
  json::array words;
  for (const auto word : names) words.emplace_back(word);
  properties_[name] = json::object{{"enum", words}};
}

void SchemaWriter::object(std::string_view name, std::string&, const std::function<void(Fields&)>&) {
  properties_[name] = json::object{{"type", "object"}, {"required", json::array{"type"}}};
}

void SchemaWriter::numbers(std::string_view name, std::vector<double>&) {
  properties_[name] = json::object{{"type", "array"}, {"items", json::object{{"type", "number"}}}};
}

void SchemaWriter::group(std::string_view name, const std::function<void(SchemaWriter&)>& inside) {
  SchemaWriter writer;
  inside(writer);
  properties_[name] = writer.schema();
}

json::object SchemaWriter::schema(bool closed) const {
  return {{"type", "object"}, {"properties", properties_}, {"additionalProperties", !closed}};
}

namespace {

json::object schemaOf(const muster::StrategyOption& option) {
  json::object schema{{"description", "default: " + option.preset}};
  if (option.kind == "number") schema["type"] = "number";
  if (option.kind == "whole number") schema["type"] = "integer";
  if (option.kind == "true or false") schema["type"] = "boolean";
  return schema;
}

}  // namespace

/// The options of each strategy are properties where its name is given. Others are allowed, because some
/// options, such as a codec, have options of their own.
void visitStrategy(SchemaWriter& writer, RunTraining& training) {
  json::array names, rules;
  for (const auto& strategy : muster::namedStrategies(static_cast<int>(training.workers))) {
    names.emplace_back(strategy.name);
    json::object options;
    for (const auto& option : muster::optionsOf(strategy.options)) options[option.name] = schemaOf(option);
    json::object named{{"name", json::object{{"const", strategy.name}}}};
    rules.push_back(
        json::object{{"if", json::object{{"properties", named}, {"required", json::array{"name"}}}},
                     {"then", json::object{{"description", strategy.description}, {"properties", options}}}});
  }
  writer.put("strategy", {{"type", "object"},
                          {"description", "a name, and options: muster strategies lists them"},
                          {"properties", json::object{{"name", json::object{{"enum", names}}}}},
                          {"allOf", rules}});
}

std::string runFileSchema() {
  SchemaWriter all;
  all.put("format", {{"const", RunFile::kFormat}});
  // The schema allows the fields of all types of data; the program checks which ones a type has.
  SchemaWriter data;
  for (const auto type : kDataTypes) {
    RunData of;
    of.type = type;
    visitData(data, of);
  }
  json::object dataSchema = data.schema();
  dataSchema["required"] = json::array{"type"};
  all.put("data", dataSchema);
  all.put("network", {{"type", "object"},
                      {"description", "the configuration of a model file: muster summary --json prints one"},
                      {"required", json::array{"format", "version"}}});
  RunTraining training;
  all.group("training", [&](SchemaWriter& in) { visitTraining(in, training); });
  RunListeners listeners;
  all.group("listeners", [&](SchemaWriter& in) { visitListeners(in, listeners); });
  json::object schema = all.schema();
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "muster run file";
  schema["required"] = json::array{"format", "data", "network"};
  return muster::detail::printJson(schema);
}

}  // namespace program
