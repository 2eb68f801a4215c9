#include <boost/json/serialize.hpp>
#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/io/json_value.h"

namespace muster {
namespace {

namespace json = boost::json;

constexpr std::size_t kLineWidth = 100;
constexpr std::size_t kIndent = 2;

/// The shortest text that a parser reads back as the same number and as type double.
std::string printDouble(double number) {
  if (!std::isfinite(number)) return "null";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool isPlain(const json::value& value) {
  return !value.is_object() && !value.is_array();
}

bool isFlatArray(const json::value& value) {
  const auto* array = value.if_array();
  if (array == nullptr) return false;
  for (const auto& element : *array)
    if (!isPlain(element)) return false;
  return true;
}

void printLines(const json::value& value, std::size_t level, std::size_t column, std::string& out) {
  const std::string line = printJsonLine(value);
  const bool fits = line.size() <= 2 || (level > 0 && column + line.size() < kLineWidth);
  if (fits || isPlain(value) || isFlatArray(value)) {
    out += line;
    return;
  }
  const std::string indent((level + 1) * kIndent, ' ');
  const char* separator = "\n";
  const auto printElement = [&](const std::string& prefix, const json::value& element) {
    out += separator + indent + prefix;
    printLines(element, level + 1, indent.size() + prefix.size(), out);
    separator = ",\n";
  };
  out += value.is_array() ? "[" : "{";
  if (const auto* array = value.if_array()) {
    for (const auto& element : *array) printElement("", element);
  } else {
    for (const auto& [key, element] : value.get_object()) printElement(quoteJson(key) + ": ", element);
  }
  out += '\n';
  out.append(level * kIndent, ' ');
  out += value.is_array() ? ']' : '}';
}

}  // namespace

std::string quoteJson(std::string_view text) {
  return json::serialize(json::string(text));
}

std::string printJsonLine(const json::value& value) {
  std::string text;
  if (const auto* array = value.if_array()) {
    for (const auto& element : *array) text += (text.empty() ? "" : ", ") + printJsonLine(element);
    return fmt::format("[{}]", text);
  }
  if (const auto* object = value.if_object()) {
    for (const auto& [key, element] : *object)
      text += (text.empty() ? "" : ", ") + quoteJson(key) + ": " + printJsonLine(element);
    return fmt::format("{{{}}}", text);
  }
  return value.is_double() ? printDouble(value.get_double()) : json::serialize(value);
}

std::string printJson(const json::value& value) {
  std::string out;
  printLines(value, 0, 0, out);
  return out + "\n";
}

std::string describeJson(const json::value& value) {
  if (value.is_object()) return "an object";
  if (value.is_string()) return fmt::format("the string {}", json::serialize(value));
  const std::string text = printJsonLine(value);
  if (value.is_array()) return text.size() <= 60 ? text : "an array";
  return text;
}

}  // namespace muster
