#include "examples/muster/run_sets.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/utf8.h"
#include "muster/core/io/json_value.h"

namespace program {

namespace json = boost::json;
using muster::InvalidArgument;
using muster::require;

namespace {

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

/// Keeps only the strategy's name: another one has other options.
void dropOptions(json::object& strategy) {
  json::value name = strategy.at("name");
  strategy.clear();
  strategy.emplace("name", std::move(name));
}

/// Whether a string in this field stands for an object with that name or type.
bool isShortForm(std::string_view field) {
  return field == "strategy" || field == "updater" || field == "learningRate";
}

std::string_view keyOf(std::string_view set) {
  return set.substr(0, set.find('='));
}

/// Whether setting `outer` replaces the field `inner`, too.
bool replaces(std::string_view outer, std::string_view inner) {
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '.');
}

}  // namespace

json::value valueOf(const std::string& text) {
  try {
    return muster::parseJson(text);
  } catch (const InvalidArgument&) {
    return json::value(text);
  }
}

void applySets(json::object& run, std::span<const std::string> sets) {
  std::vector<const std::string*> ordered;
  for (const auto& set : sets) {
    auto at = ordered.end();
    const auto key = keyOf(set);
    if (key == "data.type" || key == kStrategyName)
      while (at != ordered.begin() && !replaces(keyOf(**(at - 1)), key)) --at;
    ordered.insert(at, &set);
  }
  for (const auto* set : ordered) applySet(run, *set);
}

void applySet(json::object& run, const std::string& set) {
  require(muster::isUtf8(set), "--set {}: expected UTF-8, as in all of a run file", set);
  const auto equals = set.find('=');
  require(equals != set.npos && equals > 0, "--set {}: expected KEY=VALUE, as in training.workers=4", set);
  const auto path = set.substr(0, equals);
  require(!path.ends_with('.'), "--set {}: expected a path as in network.layers[2].outChannels", path);
  json::object* in = &run;
  const auto steps = stepsOf(path);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    json::value* at = &(*in)[steps[s].name];
    for (const auto place : steps[s].places) {
      require(at->is_array() && place < at->get_array().size(), "--set {}: {} has no element {}", path,
              steps[s].name, place);
      at = &at->get_array()[place];
    }
    if (s + 1 == steps.size()) {
      const auto before = std::exchange(*at, valueOf(set.substr(equals + 1)));
      if (path == "data.type" && *at != before) dropOthers(*in);
      if (path == kStrategyName && *at != before) dropOptions(*in);
      return;
    }
    if (at->is_null()) at->emplace_object();
    if (at->is_string() && isShortForm(steps[s].name))
      *at = json::object{{steps[s].name == "strategy" ? "name" : "type", at->get_string()}};
    require(at->is_object(), "--set {}: {} is no object", path, steps[s].name);
    in = &at->get_object();
  }
}

}  // namespace program
