#include "muster/parallel/run/detail/field_line.h"

#include <boost/json.hpp>

#include "tests/support/test.h"

using namespace muster::detail;
namespace json = boost::json;

TEST_CASE("the values of a field are those of its schema, in words") {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type": "integer"})", "whole number"},
      {R"({"type": "boolean"})", "true, false"},
      {R"({"type": "object"})", "object"},
      {R"({"type": ["string", "integer"]})", "text or whole number"},
      {R"({"type": ["integer", "array"], "items": {"type": "integer"}})", "whole number or list of them"},
      {R"({"type": "array", "items": {"type": "string"}})", "list of texts"},
      {R"({"type": "array", "items": {"$ref": "#/$defs/layer"}})", "list of layer"},
      {R"({"type": "object", "additionalProperties": {"type": "number"}})", "numbers by name"},
      {R"({"type": "object", "additionalProperties": false})", "object"},
      {R"({"enum": ["auto", "fp32", 3]})", "auto, fp32, 3"},
      {R"({"const": "adam"})", "adam"},
      {R"({"anyOf": [{"$ref": "#/$defs/updater"}, {"enum": ["a", "b"]}, {"$ref": "#/$defs/updater"}]})",
       "updater or its name"},
      {"{}", ""},
  };
  for (const auto& [schema, values] : cases)
    CHECK(lineOf("a.b", json::parse(schema).as_object()).values == values);
}

TEST_CASE("a field has its path, its description and its default, as a run file has it") {
  const auto line = lineOf("a.b", {{"type", "integer"}, {"default", 3}, {"description", "how many"}});
  CHECK(line.path == "a.b");
  CHECK(line.description == "how many");
  const std::pair<json::value, const char*> presets[] = {
      {3, "3"}, {0.1, "0.1"}, {"a", R"("a")"}, {true, "true"}};
  for (const auto& [preset, text] : presets) CHECK(lineOf("a", {{"default", preset}}).preset == text);
  CHECK(lineOf("a", {}).preset == "");
  CHECK(wordOf("a b") == "a b");
  CHECK(wordOf(json::array{1, "a"}) == R"([1, "a"])");
}
