#pragma once

#include <boost/json.hpp>
#include <regex>

#include "tests/support/standard.h"

namespace muster::test {

/// Checks values against a JSON Schema: the keywords of draft 2020-12 that our schemas use. Written anew, so
/// that tests need no other library.
class JsonSchema {
 public:
  explicit JsonSchema(boost::json::value schema) : root_(std::move(schema)) {}

  /// @return the first problem, as "/network/layers/0: unknown field unit"; "" if the value is valid.
  /// @throws std::runtime_error for a keyword that this class does not know.
  std::string problem(const boost::json::value& value) const { return check(root_, value, ""); }

 private:
  using Value = boost::json::value;

  std::string check(const Value& schema, const Value& value, const std::string& at) const {
    for (const auto& [keyword, rule] : schema.as_object())
      if (auto found = apply(schema, keyword, rule, value, at); !found.empty()) return found;
    return "";
  }

  std::string apply(const Value& schema, std::string_view keyword, const Value& rule, const Value& value,
                    const std::string& at) const {
    const auto isOneOf = [&](std::initializer_list<std::string_view> words) {
      return std::ranges::find(words, keyword) != words.end();
    };
    if (isOneOf({"$schema", "$defs", "title", "description", "default", "then"})) return "";
    if (keyword == "$ref")
      return check(root_.at_pointer(std::string_view(rule.as_string()).substr(1)), value, at);
    if (keyword == "type") return hasOneType(value, rule) ? "" : at + ": is no " + textOf(rule);
    if (keyword == "const") return value == rule ? "" : at + ": is not " + textOf(rule);
    if (keyword == "enum") {
      for (const auto& one : rule.as_array())
        if (one == value) return "";
      return at + ": is none of " + textOf(rule);
    }
    if (keyword == "anyOf") {
      const auto& forms = rule.as_array();
      for (const auto& one : forms)
        if (check(one, value, at).empty()) return "";
      return check(forms.front(), value, at);
    }
    if (keyword == "allOf") {
      for (const auto& one : rule.as_array())
        if (auto found = check(one, value, at); !found.empty()) return found;
      return "";
    }
    if (keyword == "if") return check(rule, value, at).empty() ? check(schema.at("then"), value, at) : "";
    if (isOneOf({"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}))
      return ofNumber(keyword, rule, value, at);
    if (keyword == "minLength")
      return !value.is_string() || value.as_string().size() >= rule.to_number<std::size_t>()
                 ? ""
                 : at + ": too short";
    if (keyword == "pattern")
      return !value.is_string() ||
                     std::regex_search(value.as_string().c_str(), std::regex(rule.as_string().c_str()))
                 ? ""
                 : at + ": does not match " + textOf(rule);
    if (isOneOf({"items", "minItems", "maxItems", "uniqueItems"})) return ofArray(keyword, rule, value, at);
    if (isOneOf({"properties", "required", "additionalProperties", "dependentSchemas"}))
      return ofObject(schema, keyword, rule, value, at);
    throw std::runtime_error("JSON Schema: unknown keyword " + std::string(keyword));
  }

  static std::string ofNumber(std::string_view keyword, const Value& rule, const Value& value,
                              const std::string& at) {
    if (!value.is_number()) return "";
    const auto number = value.to_number<double>(), bound = rule.to_number<double>();
    const bool inside = keyword == "minimum"            ? number >= bound
                        : keyword == "exclusiveMinimum" ? number > bound
                        : keyword == "maximum"          ? number <= bound
                                                        : number < bound;
    if (inside) return "";
    return at + (keyword.ends_with("inimum") ? ": too small" : ": too large");
  }

  std::string ofArray(std::string_view keyword, const Value& rule, const Value& value,
                      const std::string& at) const {
    const auto* const array = value.if_array();
    if (array == nullptr) return "";
    if (keyword == "minItems")
      return array->size() >= rule.to_number<std::size_t>() ? "" : at + ": too short";
    if (keyword == "uniqueItems") {
      for (auto one = array->begin(); one != array->end(); ++one)
        if (std::find(array->begin(), one, *one) != one) return at + ": has " + textOf(*one) + " twice";
      return "";
    }
    if (keyword == "maxItems") return array->size() <= rule.to_number<std::size_t>() ? "" : at + ": too long";
    for (std::size_t i = 0; i < array->size(); ++i)
      if (auto found = check(rule, (*array)[i], at + "/" + std::to_string(i)); !found.empty()) return found;
    return "";
  }

  std::string ofObject(const Value& schema, std::string_view keyword, const Value& rule, const Value& value,
                       const std::string& at) const {
    const auto* const object = value.if_object();
    if (object == nullptr) return "";
    if (keyword == "required") {
      for (const auto& name : rule.as_array())
        if (!object->contains(name.as_string())) return at + ": has no " + textOf(name);
      return "";
    }
    if (keyword == "dependentSchemas") {
      for (const auto& [name, inside] : rule.as_object())
        if (object->contains(name))
          if (auto found = check(inside, value, at); !found.empty()) return found;
      return "";
    }
    const auto& known = schema.at("properties").as_object();
    for (const auto& [name, inside] : *object) {
      const auto* const property = known.if_contains(name);
      if (keyword == "properties" && property != nullptr)
        if (auto found = check(*property, inside, at + "/" + std::string(name)); !found.empty()) return found;
      if (keyword == "additionalProperties" && property == nullptr && !rule.as_bool())
        return at + ": unknown field " + std::string(name);
    }
    return "";
  }

  /// @param types  a word, or an array of words.
  static bool hasOneType(const Value& value, const Value& types) {
    if (!types.is_array()) return hasType(value, types.as_string());
    return std::ranges::any_of(types.as_array(),
                               [&](const Value& type) { return hasType(value, type.as_string()); });
  }

  static bool hasType(const Value& value, std::string_view type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_bool();
    if (type == "number") return value.is_number();
    if (type == "integer") return value.is_int64() || value.is_uint64();
    throw std::runtime_error("JSON Schema: unknown type " + std::string(type));
  }

  static std::string textOf(const Value& value) { return boost::json::serialize(value); }

  Value root_;
};

}  // namespace muster::test
