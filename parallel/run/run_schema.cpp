#include "muster/parallel/run/run_schema.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <string_view>
#include <utility>

#include "muster/core/io/detail/network_schema.h"
#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/comparison_fields.h"
#include "muster/parallel/run/detail/named_network_schemas.h"
#include "muster/parallel/run/detail/run_fields.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/run/named_networks.h"

namespace muster {

namespace json = boost::json;
using detail::NetworkSchema, detail::SchemaWriter;

namespace {

/// Lets an object also be a value of the field for which that may stand.
void allowShortForm(json::object& schema, const detail::ShortForm& form) {
  json::object* at = &schema;
  for (std::string_view rest = form.path; !rest.empty();) {
    const auto dot = std::min(rest.find('.'), rest.size());
    at = &at->at("properties").as_object().at(rest.substr(0, dot)).as_object();
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  auto field = at->at("properties").as_object().at(form.field).as_object();
  for (const auto* own : {"default", "description"}) field.erase(own);
  at->erase("type");
  (*at)["anyOf"] = json::array{json::object{{"type", "object"}}, std::move(field)};
}

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
  auto& listeners = schema.at("properties").at("listeners").at("properties");
  auto& checkpoints = listeners.at("checkpoints").as_object();
  checkpoints["required"] = json::array{"directory"};
  checkpoints.at("properties").at("directory").as_object().erase("default");
  auto& training = schema.at("properties").at("training").at("properties");
  for (auto* const name : {&checkpoints.at("properties").at("directory"), &training.at("model")})
    name->as_object()["minLength"] = 1;
  training.at("nodes").as_object()["enum"] = json::array{"auto", "none", "mpi", "gloo", "elastic"};
  listeners.at("curves").as_object()["pattern"] = R"(^$|\.curves\.jsonl$)";
  for (const auto& form : detail::kShortForms)
    if (form.path != "training.strategy") allowShortForm(schema, form);
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "muster run file";
  schema["required"] = json::array{"format", "data", "network"};
  schema["$defs"] = network.definitions;
  return printJson(schema);
}

}  // namespace muster
