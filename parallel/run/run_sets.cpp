#include "muster/parallel/run/run_sets.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/comma_list.h"
#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/base/utf8.h"
#include "muster/core/io/json_value.h"
#include "muster/parallel/run/field_list.h"
#include "muster/parallel/run/named_networks.h"

namespace muster {

namespace json = boost::json;

namespace {

/// Lists of words, which the command line also has as in `data.columns=size,colour`.
constexpr std::string_view kWordLists[] = {"data.columns", "data.leaveOut"};

/// One step of a path: a field, then array indices, as in "layers[2]".
struct Step {
  std::string name;
  std::vector<std::size_t> places;
};

Step stepOf(std::string_view text, std::string_view path) {
  Step step;
  const auto bracket = std::min(text.find('['), text.size());
  step.name = text.substr(0, bracket);
  text.remove_prefix(bracket);
  while (!text.empty()) {
    std::size_t place = 0;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), place);
    const bool closed =
        error == std::errc() && end != text.data() + text.size() && *end == ']' && text[0] == '[';
    require(closed, "--set {}: expected a path as in network.layers[2].outChannels", path);
    text.remove_prefix(static_cast<std::size_t>(end + 1 - text.data()));
    step.places.push_back(place);
  }
  require(!step.name.empty(), "--set {}: expected a path as in network.layers[2].outChannels", path);
  return step;
}

/// Splits a path at dots, but not within the name of a strategy's option.
std::vector<Step> stepsOf(std::string_view path) {
  const std::string_view whole = path;
  std::vector<Step> steps;
  while (!path.empty()) {
    const bool option = whole.starts_with(kStrategyPath) && steps.size() == 2;
    const auto dot = option ? path.size() : std::min(path.find('.'), path.size());
    steps.push_back(option ? Step{std::string(path), {}} : stepOf(path.substr(0, dot), whole));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return steps;
}

/// Keeps only the data fields that all types have.
void dropOthers(json::object& data) {
  for (const auto* const name : {"directory", "trainExamples", "testExamples", "trainImages", "trainLabels",
                                 "testImages", "testLabels", "classes", "train", "test", "header", "label",
                                 "separator", "regression", "columns", "leaveOut", "grey", "height", "width"})
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

/// Whether a field decides which others there are beside it.
bool isKind(std::string_view path) {
  return path == "data.type" || path == kStrategyName || path == "network.name" ||
         (path.starts_with("network.") && path.ends_with(".type"));
}

/// The value of a field: for a list also its elements with commas between them.
json::value valueFor(std::string_view path, const std::string& text) {
  auto value = jsonOrWord(text);
  if (!value.is_string() && std::ranges::find(kWordLists, path) == std::end(kWordLists)) return value;
  if (value.is_array() || value.is_null() || text.empty()) return value;
  if (std::ranges::find(kWordLists, path) == std::end(kWordLists)) {
    auto numbers = jsonOrWord("[" + text + "]");
    const bool list = text.find(',') != text.npos && numbers.is_array() &&
                      std::ranges::all_of(numbers.get_array(), &json::value::is_number);
    return list ? numbers : value;
  }
  json::array words;
  for (const auto word : commaList(text)) words.emplace_back(word);
  return words;
}

/// Gives a named network its default updater, of which a set may then change a part.
void giveUpdater(json::value& network) {
  const auto* const object = network.if_object();
  if (!object || !object->contains("name") || object->contains("updater")) return;
  const auto whole = parseJson(withAllOptions(printJson(json::object{{"name", object->at("name")}})));
  network.get_object()["updater"] = whole.at("updater");
}

/// A number as C and Python write it, which JSON may not, as ".5" or "1."; NaN if it is not finite or does
/// not fit a double, as "nan" or "1e400".
std::optional<double> numberIn(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  return error == std::errc() && std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

/// The object for which a number or a word at this path stands; null if it is none of the short forms.
json::value expanded(std::string_view path, const json::value& value) {
  const auto field = path.substr(std::min(path.rfind('.') + 1, path.size()));
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
          "--set {}=null: a run file has no field {}; the nearest is {}", path, path,
          nearestWord(std::string(path), known));
}

std::string_view keyOf(std::string_view set) {
  return set.substr(0, set.find('='));
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
    if (const auto value = numberIn(text); value && std::isfinite(*value)) return *value;
    return json::value(text);
  }
}

void applySets(json::object& run, std::span<const std::string> sets) {
  std::vector<const std::string*> ordered;
  for (const auto& set : sets) {
    auto at = ordered.end();
    const auto key = keyOf(set);
    if (isKind(key))
      while (at != ordered.begin() && !replaces(keyOf(**(at - 1)), key)) --at;
    ordered.insert(at, &set);
  }
  for (const auto* set : ordered) applySet(run, *set);
}

void applySet(json::object& run, const std::string& set) {
  require(isUtf8(set), "--set {}: expected UTF-8, as in all of a run file", set);
  const auto equals = set.find('=');
  require(equals != set.npos && equals > 0, "--set {}: expected KEY=VALUE, as in training.workers=4", set);
  const auto path = set.substr(0, equals);
  require(!path.ends_with('.'), "--set {}: expected a path as in network.layers[2].outChannels", path);
  json::object* in = &run;
  std::string soFar;  // the path to `in`
  const auto steps = stepsOf(path);
  const auto value = valueFor(path, set.substr(equals + 1));
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (value.is_null() && steps[s].places.empty() &&
        (s + 1 == steps.size() || !in->contains(steps[s].name))) {
      if (in->erase(steps[s].name) == 0) requireField(path);
      return;
    }
    json::value* at = &(*in)[steps[s].name];
    for (const auto place : steps[s].places) {
      require(at->is_array() && place < at->get_array().size(), "--set {}: {} has no element {}", path,
              steps[s].name, place);
      at = &at->get_array()[place];
    }
    if (s + 1 == steps.size()) {
      const auto text = set.substr(equals + 1);
      require(!path.ends_with("learningRate") || !value.is_string() || !numberIn(text),
              "{}: expected a finite number that fits a double, got {}", path, text);
      const auto before = std::exchange(*at, value);
      if (!isKind(path) || *at == before) return;
      if (path == "data.type")
        dropOthers(*in);
      else
        keepOnly(*in, steps[s].name);
      return;
    }
    if (at->is_null()) at->emplace_object();
    soFar.append(soFar.empty() ? "" : ".").append(steps[s].name);
    if (auto object = expanded(soFar, *at); !object.is_null()) *at = std::move(object);
    if (path.starts_with("network.updater.") && soFar == "network") giveUpdater(*at);
    require(at->is_object(), "--set {}: {} is no object", path, steps[s].name);
    in = &at->get_object();
  }
}

}  // namespace muster
