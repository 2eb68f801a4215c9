#include "muster/parallel/run/detail/run_overrides.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/base/number_text.h"
#include "muster/core/base/text_table.h"
#include "muster/core/base/utf8.h"
#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/field_list.h"
#include "muster/parallel/run/detail/field_path.h"
#include "muster/parallel/run/named_networks.h"

namespace muster::detail {

namespace json = boost::json;

namespace {

/// Lists of words, which the command line also has as in `data.columns=size,"colour, of hair"`.
constexpr std::string_view kWordLists[] = {"data.columns", "data.leaveOut"};

/// What a run file has.
const std::vector<std::string> kParts{"format",    "data",    "network", "training",
                                      "listeners", "compare", "$schema"};

/// Other names of fields, and names of those that only some networks and strategies have.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"lr", "network.updater.learningRate"},
    {"learningRate", "network.updater.learningRate"},
    {"momentum", "network.updater.momentum"},
    {"updater", "network.updater"},
    {"l2", "network.l2"},
    {"every", "training.strategy.every"},
    {"batchSize", "data.batch"}};

/// Keeps only the data fields that all types have.
void dropOthers(json::object& data) {
  for (const auto* const name : {"directory",  "trainExamples", "testExamples", "trainImages", "trainLabels",
                                 "testImages", "testLabels",    "classes",      "train",       "test",
                                 "header",     "label",         "separator",    "regression",  "columns",
                                 "leaveOut",   "dateOrder",     "grey",         "height",      "width"})
    data.erase(name);
}

/// Keeps only the name of a strategy or the type of an updater, schedule or layer, whose others have other
/// options, and what places a layer in its graph.
void keepOnly(json::object& object, std::string_view field) {
  json::object kept;
  for (const auto name : {field, std::string_view("vertex"), std::string_view("inputs")})
    if (const auto* value = object.if_contains(name)) kept.emplace(name, *value);
  object = std::move(kept);
}

/// Whether a field decides which other fields there are.
bool isKind(std::string_view path) {
  return path == "data.type" || path == kStrategyName || path == "network.name" ||
         (path.starts_with("network.") && path.ends_with(".type"));
}

/// Whether a field is a text, of which a number is one, too, as in `data.label=9`.
bool isText(std::string_view path) {
  const auto& fields = fieldLines();
  const auto field = std::ranges::find(fields, path, &FieldLine::path);
  return field != fields.end() && field->values.starts_with("text");
}

/// The value of a field: for a list also its elements with commas between them.
json::value valueFor(std::string_view path, const std::string& text) {
  auto value = jsonOrWord(text);
  if ((value.is_number() || value.is_bool()) && isText(path)) return json::value(text);
  if (!value.is_string() && std::ranges::find(kWordLists, path) == std::end(kWordLists)) return value;
  if (value.is_array() || value.is_null() || text.empty()) return value;
  if (std::ranges::find(kWordLists, path) == std::end(kWordLists)) {
    auto numbers = jsonOrWord("[" + text + "]");
    const bool list = text.find(',') != text.npos && numbers.is_array() &&
                      std::ranges::all_of(numbers.get_array(), &json::value::is_number);
    return list ? numbers : value;
  }
  json::array words;
  for (const auto& word : csvFields(text)) words.emplace_back(word);
  return words;
}

/// Gives a named network its default updater, of which an override may then change a part.
void giveUpdater(json::value& network) {
  const auto* const object = network.if_object();
  if (!object || !object->contains("name") || object->contains("updater")) return;
  const auto whole = parseJson(withAllOptions(printJson(json::object{{"name", object->at("name")}})));
  network.get_object()["updater"] = whole.at("updater");
}

std::string_view lastPart(std::string_view path) {
  return path.substr(std::min(path.rfind('.') + 1, path.size()));
}

/// The object for which a number or a word at this path stands; null if it is none of the short forms.
json::value expanded(std::string_view path, const json::value& value) {
  const auto field = lastPart(path);
  if (value.is_string() && path == kStrategyPath.substr(0, kStrategyPath.size() - 1))
    return json::object{{"name", value}};
  if (value.is_string() && path == "network") return json::object{{"name", value}};
  if (value.is_string() && (field == "updater" || field == "learningRate"))
    return json::object{{"type", value}};
  if (value.is_number() && field == "learningRate") return json::object{{"type", "fixed"}, {"value", value}};
  if (!value.is_string() && !value.is_number()) return nullptr;
  const auto form = std::ranges::find(kShortForms, path, &ShortForm::path);
  if (form == std::end(kShortForms)) return nullptr;
  return json::object{{form->field, value}};
}

/// Whether setting `outer` replaces the field `inner`, too.
bool replaces(std::string_view outer, std::string_view inner) {
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '.');
}

/// @throws InvalidArgument if no run file has a field or a group of this path. Those of networks and
///         strategies are not checked.
void requireField(std::string_view path) {
  if (replaces("network", path) || replaces("training.strategy", path)) return;
  std::vector<std::string> known;
  for (const auto& field : fieldLines()) known.push_back(field.path);
  require(std::ranges::any_of(known, [&](const std::string& one) { return replaces(path, one); }),
          "a run file has no field {}{}", path, nearestHint(path, known));
}

/// Names by which fields may be meant, with their paths.
std::multimap<std::string, std::string, std::less<>> shortNames() {
  std::multimap<std::string, std::string, std::less<>> all(std::begin(kAliases), std::end(kAliases));
  for (const auto& field : fieldLines()) all.emplace(lastPart(field.path), field.path);
  return all;
}

/// The path of the field that a user means by a name alone, misspelt perhaps; "" if that is not clear.
std::string meantBy(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, path] : shortNames()) names.push_back(known);
  const auto nearest = nearestWord(name, names);
  return nearest ? fieldNamed(*nearest) : "";
}

/// @throws InvalidArgument if no run file has the first part of this path.
void requirePart(const json::object& run, std::string_view path) {
  const auto part = path.substr(0, path.find_first_of(".["));
  if (run.contains(part) || std::ranges::find(kParts, part) != kParts.end()) return;
  const auto near = nearestWord(part, kParts);
  const auto meant = near && part.size() < path.size() ? *near + std::string(path.substr(part.size()))
                                                       : meantBy(lastPart(path));
  throw InvalidArgument(
      fmt::format("a run file has no field {}{}", path,
                  meant.empty() ? nearestOfHint(part, kParts) : "; the nearest is " + meant));
}

/// What sets a field.
struct Override {
  std::string path, text;
  std::vector<Step> steps;  // of the path
  json::value value;        // of the text
};

/// @throws InvalidArgument for a text that is not KEY=VALUE.
Override overrideOf(const std::string& text) {
  require(isUtf8(text), "{}: expected UTF-8, as in all of a run file", text);
  const auto equals = text.find('=');
  require(equals != text.npos && equals > 0, "{}: expected KEY=VALUE, as in training.workers=4", text);
  Override one{.path = text.substr(0, equals), .text = text.substr(equals + 1), .steps = {}, .value = {}};
  one.steps = stepsOf(one.path);
  one.value = valueFor(one.path, one.text);
  return one;
}

/// @throws InvalidArgument with the lists there are, in a network: it has layers or, as a graph, vertices.
void requireList(const json::object& in, std::string_view name, std::string_view path) {
  if (in.contains(name) || !(in.contains("layers") || in.contains("vertices"))) return;
  std::vector<std::string_view> lists;
  for (const auto& field : in)
    if (field.value().is_array()) lists.emplace_back(field.key());
  require(lists.empty(), "{}: there is no list {}; there is {}", path, name, fmt::join(lists, ", "));
}

/// The field of `in` that a step names, or the element of it; a field that is missing is made.
json::value& valueAt(json::object& in, const Step& step, std::string_view path) {
  if (!step.places.empty()) requireList(in, step.name, path);
  json::value* at = &in[step.name];
  for (const auto place : step.places) {
    require(at->is_array() && place < at->get_array().size(), "{}: {} has no element {}", path, step.name,
            place);
    at = &at->get_array()[place];
  }
  return *at;
}

/// Gives the last field of a path its value; one that decides which others there are drops those of the old
/// one.
void setField(json::object& in, json::value& at, const Step& step, const Override& one) {
  require(!one.path.ends_with("learningRate") || !one.value.is_string() || !parsedNumber(one.text),
          "{}: expected a finite number that fits a double, got {}", one.path, one.text);
  const auto before = std::exchange(at, one.value);
  if (!isKind(one.path) || at == before) return;
  if (one.path == "data.type")
    dropOthers(in);
  else
    keepOnly(in, step.name);
}

/// The object at a step, in the place of nothing or of a short form of it. @param soFar  the path to it.
json::object& objectAt(json::value& at, std::string_view soFar, const Step& step, std::string_view path) {
  const bool noWeights = soFar == "data.classWeights" && at.is_array() && at.get_array().empty();
  if (at.is_null() || noWeights) at.emplace_object();
  if (auto object = expanded(soFar, at); !object.is_null()) at = std::move(object);
  if (path.starts_with("network.updater.") && soFar == "network") giveUpdater(at);
  require(at.is_object(), "{}: {} is no object", path, step.name);
  return at.get_object();
}

}  // namespace

void expandShortForms(json::object& run) {
  for (const auto& form : kShortForms) {
    json::object* in = &run;
    std::string_view rest = form.path;
    for (auto dot = rest.find('.'); in && dot != rest.npos; dot = rest.find('.')) {
      json::value* const inside = in->if_contains(rest.substr(0, dot));
      in = inside ? inside->if_object() : nullptr;
      rest.remove_prefix(dot + 1);
    }
    json::value* const value = in ? in->if_contains(rest) : nullptr;
    if (!value) continue;
    if (auto object = expanded(form.path, *value); !object.is_null()) *value = std::move(object);
  }
}

json::value jsonOrWord(const std::string& text) {
  try {
    return parseJson(text);
  } catch (const InvalidArgument&) {
    // As ".5" or "1.", which JSON may not have.
    if (const auto value = parsedNumber(text); value && std::isfinite(*value)) return *value;
    return json::value(text);
  }
}

std::string fieldNamed(std::string_view name) {
  const auto all = shortNames();
  const auto [first, last] = all.equal_range(name);
  return std::distance(first, last) == 1 ? first->second : "";
}

std::string_view keyOf(std::string_view text) {
  return text.substr(0, text.find('='));
}

void applyOverrides(json::object& run, std::span<const std::string> overrides) {
  std::vector<const std::string*> ordered;
  for (const auto& one : overrides) {
    auto at = ordered.end();
    const auto key = keyOf(one);
    if (isKind(key))
      while (at != ordered.begin() && !replaces(keyOf(**(at - 1)), key)) --at;
    ordered.insert(at, &one);
  }
  for (const auto* one : ordered) applyOverride(run, *one);
}

void applyOverride(json::object& run, const std::string& text) {
  const Override one = overrideOf(text);
  requirePart(run, one.path);
  json::object* in = &run;
  std::string soFar;  // the path to `in`
  for (const auto& step : one.steps) {
    const bool last = &step == &one.steps.back();
    if (one.value.is_null() && step.places.empty() && (last || !in->contains(step.name))) {
      if (in->erase(step.name) == 0) requireField(one.path);
      return;
    }
    json::value& at = valueAt(*in, step, one.path);
    if (last) return setField(*in, at, step, one);
    soFar.append(soFar.empty() ? "" : ".").append(step.name);
    in = &objectAt(at, soFar, step, one.path);
  }
}

}  // namespace muster::detail
