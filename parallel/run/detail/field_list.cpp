#include "muster/parallel/run/detail/field_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <stdexcept>
#include <utility>

#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/field_line.h"
#include "muster/parallel/run/run_schema.h"

namespace muster::detail {

namespace json = boost::json;

namespace {

std::string_view typeText(std::string_view type) {
  if (type == "integer") return "whole number";
  if (type == "boolean") return "true, false";
  return type == "string" ? "text" : type;
}

std::string joined(const json::array& words, std::string_view between) {
  std::string text;
  for (const auto& word : words)
    if (word != "") text.append(text.empty() ? "" : between).append(wordOf(word));
  return text;
}

/// The values that a schema allows, in words.
std::string valuesOf(const json::object& schema) {
  if (const auto* words = schema.if_contains("enum")) return joined(words->get_array(), ", ");
  if (const auto* only = schema.if_contains("const")) return wordOf(*only);
  if (const auto* reference = schema.if_contains("$ref"))
    return std::string(reference->get_string().subview(sizeof("#/$defs/") - 1));
  if (const auto* forms = schema.if_contains("anyOf")) {
    std::string text;
    for (const auto& form : forms->get_array()) {
      const auto* const names = form.get_object().if_contains("enum");
      const bool ofTypes =
          names && (forms->get_array().front().as_object().contains("$ref") || names->get_array().size() > 9);
      const auto words = ofTypes ? "its name" : valuesOf(form.get_object());
      if (text.find(words) == text.npos) text.append(text.empty() ? "" : " or ").append(words);
    }
    return text;
  }
  const auto* type = schema.if_contains("type");
  if (!type) return "";
  const auto isNumbers = [](const json::array& types) {
    return types.size() == 2 && types.front() == "integer";
  };
  if (type->is_array() && schema.contains("items") && isNumbers(type->get_array()))
    return "whole number or list of them";
  if (type->is_array()) {
    std::string text;
    for (const auto& one : type->get_array())
      text.append(text.empty() ? "" : " or ").append(one == "array" ? "list" : typeText(one.get_string()));
    return text;
  }
  const auto* const named = schema.if_contains("additionalProperties");
  if (named && named->is_object()) return fmt::format("{}s by name", valuesOf(named->get_object()));
  if (type->get_string() != "array") return std::string(typeText(type->get_string()));
  const auto items = valuesOf(schema.at("items").as_object());
  return fmt::format("list of {}",
                     items == "whole number" || items == "number" || items == "text" ? items + "s" : items);
}

std::string presetText(const json::value& value) {
  return value.is_double() ? fmt::format("{}", value.get_double()) : printJsonLine(value);
}

/// The range that a schema has, in words; a largest value that only keeps counts from overflowing is left
/// out.
std::string rangeOf(const json::object& schema) {
  constexpr double kLarge = 1e12;
  constexpr std::pair<std::string_view, std::string_view> kBounds[] = {{"minimum", "at least"},
                                                                       {"exclusiveMinimum", "above"},
                                                                       {"maximum", "at most"},
                                                                       {"exclusiveMaximum", "below"}};
  std::string text;
  for (const auto& [keyword, words] : kBounds)
    if (const auto* const bound = schema.if_contains(keyword); bound && bound->to_number<double>() < kLarge)
      text += fmt::format(", {} {}", words, presetText(*bound));
  return text;
}

void addLines(const json::object& properties, const std::string& prefix, std::vector<FieldLine>& all) {
  for (const auto& [name, value] : properties) {
    const auto& schema = value.get_object();
    auto path = prefix + std::string(name);
    const auto* const inside = schema.if_contains("properties");
    all.push_back(lineOf(path, schema));
    if (inside && path != "network") addLines(inside->get_object(), path + ".", all);
  }
}

}  // namespace

std::string wordOf(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : printJsonLine(value);
}

FieldLine lineOf(std::string path, const json::object& schema) {
  const auto* const preset = schema.if_contains("default");
  const auto* const description = schema.if_contains("description");
  return {std::move(path), valuesOf(schema) + rangeOf(schema), preset ? presetText(*preset) : "",
          description ? std::string(description->get_string()) : ""};
}

const std::vector<FieldLine>& fieldLines() {
  static const std::vector<FieldLine> all = [] {
    std::vector<FieldLine> lines;
    addLines(json::parse(runFileSchema()).at("properties").as_object(), "", lines);
    std::erase_if(lines, [](const FieldLine& line) { return line.path.starts_with("compare."); });
    return lines;
  }();
  return all;
}

const FieldLine& fieldAt(std::string_view path) {
  const auto& all = fieldLines();
  const auto found = std::ranges::find(all, path, &FieldLine::path);
  if (found == all.end()) throw std::out_of_range(fmt::format("a run file has no field {}", path));
  return *found;
}

}  // namespace muster::detail
