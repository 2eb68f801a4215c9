#include "muster/core/io/detail/schema_writer.h"

#include <boost/json/array.hpp>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/io/json_value.h"

namespace muster::detail {

namespace json = boost::json;

void setRange(json::object& schema, std::string_view range) {
  if (range.empty()) return;
  const auto comma = range.find(", ");
  require(comma != range.npos, "a range must be as in \"[0, 1)\", got \"{}\"", range);
  const std::string least(range.substr(1, comma - 1)),
      most(range.substr(comma + 2, range.size() - comma - 3));
  if (!least.empty()) schema[range.front() == '(' ? "exclusiveMinimum" : "minimum"] = parseJson(least);
  if (!most.empty()) schema[range.back() == ')' ? "exclusiveMaximum" : "maximum"] = parseJson(most);
  if (auto* const items = schema.if_contains("items")) setRange(items->as_object(), range);
}

void SchemaWriter::put(std::string_view name, json::object schema) {
  if (!description_.empty()) schema["description"] = std::exchange(description_, {});
  setRange(schema, std::exchange(range_, {}));
  properties_[name] = std::move(schema);
}

void SchemaWriter::field(std::string_view name, std::uint64_t& value) {
  put(name, {{"type", "integer"}, {"minimum", 0}, {"default", value}});
}

void SchemaWriter::field(std::string_view name, Shape& value) {
  json::object schema{{"type", json::array{"integer", "array"}},
                      {"items", json::object{{"type", "integer"}}}};
  if (!value.empty()) schema["minItems"] = value.rank();
  schema["maxItems"] = value.empty() ? Shape::kMaxRank : value.rank();
  schema["default"] = json::array(value.begin(), value.end());
  put(name, std::move(schema));
}

void SchemaWriter::choice(std::string_view name, std::size_t& index,
                          std::span<const std::string_view> names) {
  json::array words;
  for (const auto word : names) words.emplace_back(word);
  put(name, {{"enum", std::move(words)}, {"default", names[index]}});
}

void SchemaWriter::object(std::string_view name, std::string& type,
                          const std::function<void(Fields&)>& inside) {
  if (families_ != nullptr)
    if (const auto family = families_->find(type); family != families_->end()) {
      JsonWriter preset;
      preset.object(name, type, inside);
      json::array names;
      for (const auto& [one, itsFamily] : *families_)
        if (itsFamily == family->second) names.emplace_back(one);
      json::array forms{json::object{{"$ref", "#/$defs/" + family->second}}, json::object{{"enum", names}}};
      if (family->second == "schedule") forms.push_back(json::object{{"type", "number"}, {"minimum", 0}});
      return put(name, {{"anyOf", forms}, {"default", parseJson(preset.line()).as_object().at(name)}});
    }
  SchemaWriter writer(families_);
  writer.put("type", {{"const", type}});
  inside(writer);
  json::object schema = writer.schema();
  schema["required"] = json::array{"type"};
  put(name, std::move(schema));
}

void SchemaWriter::numbers(std::string_view name, std::vector<double>&) {
  put(name, {{"type", "array"}, {"items", json::object{{"type", "number"}}}});
}

void SchemaWriter::group(std::string_view name, const std::function<void(SchemaWriter&)>& inside) {
  SchemaWriter writer(families_);
  inside(writer);
  put(name, writer.schema());
}

json::object SchemaWriter::schema() const {
  return {{"type", "object"}, {"properties", properties_}, {"additionalProperties", false}};
}

namespace {

/// Requires the fields whose defaults are out of range, such as sizes of 0, which no file can leave out.
void requireFields(json::object& schema) {
  json::array required;
  for (auto& [name, value] : schema.at("properties").as_object()) {
    auto& field = value.as_object();
    const auto* const preset = field.if_contains("default");
    const auto* const least = field.if_contains("minimum");
    if (!preset || !least || !preset->is_int64() || preset->get_int64() >= least->to_number<std::int64_t>())
      continue;
    field.erase("default");
    required.emplace_back(name);
  }
  if (!required.empty()) schema["required"] = std::move(required);
}

}  // namespace

json::object schemaOfTypes(std::string_view key, std::string_view description,
                           const std::vector<std::pair<std::string, json::object>>& types) {
  json::array names, rules;
  for (auto [type, schema] : types) {
    requireFields(schema);
    names.emplace_back(type);
    const json::object is{{key, json::object{{"const", type}}}};
    rules.push_back(json::object{{"if", json::object{{"properties", is}, {"required", json::array{key}}}},
                                 {"then", schema}});
  }
  return {{"type", "object"},
          {"required", json::array{key}},
          {"properties", json::object{{key, json::object{{"enum", names}, {"description", description}}}}},
          {"allOf", rules}};
}

}  // namespace muster::detail
