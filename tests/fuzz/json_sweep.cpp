#include "tests/fuzz/json_sweep.h"

#include <boost/json/serialize.hpp>

#include "tests/fuzz/hostile_values.h"
#include "tests/fuzz/json_places.h"

namespace muster::fuzz {
namespace {

namespace json = boost::json;
using Values = std::vector<json::value>;

/// A misspelt word.
std::string_view withoutFirst(std::string_view word) {
  return word.substr(std::min<std::size_t>(1, word.size()));
}

void addStrings(json::value& document, Values& values) {
  for (const auto& place : placesIn(document))
    if (place.value->is_string() && place.value->get_string().size() < 64) values.push_back(*place.value);
}

void addArrays(const json::array& array, Values& values) {
  for (std::size_t i = 0; i < array.size(); ++i) {
    json::array without = array, twice = array;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    values.emplace_back(std::move(without));
    twice.push_back(array[i]);
    values.emplace_back(std::move(twice));
    if (i == 0) continue;
    json::array exchanged = array;
    std::swap(exchanged[i - 1], exchanged[i]);
    values.emplace_back(std::move(exchanged));
  }
}

void addObjects(const json::object& object, Values& values) {
  for (const auto& [key, value] : object) {
    json::object without = object;
    without.erase(key);
    json::object misspelt = without;
    misspelt[withoutFirst(key)] = value;
    values.emplace_back(std::move(misspelt));
    values.emplace_back(std::move(without));
  }
  json::object more = object;
  more["unknown"] = 1;
  values.emplace_back(std::move(more));
}

/// What may replace a place of a document.
Values replacements(const Place& place, json::value& document, const Vocabulary& vocabulary) {
  Values values(hostileValues().begin(), hostileValues().end());
  const auto known = vocabulary.of(place.field);
  values.insert(values.end(), known.begin(), known.end());
  if (place.value->is_string()) {
    addStrings(document, values);
    values.emplace_back(withoutFirst(place.value->get_string()));
  }
  if (const auto* const array = place.value->if_array()) addArrays(*array, values);
  if (const auto* const object = place.value->if_object()) addObjects(*object, values);
  return values;
}

}  // namespace

JsonSweep::JsonSweep(std::vector<json::value> documents, const Vocabulary& vocabulary)
    : documents_(std::move(documents)) {
  std::set<std::string> made;
  for (std::size_t d = 0; d < documents_.size(); ++d) {
    const auto places = placesIn(documents_[d]);
    for (std::size_t p = 0; p < places.size(); ++p)
      for (auto& value : replacements(places[p], documents_[d], vocabulary))
        if (made.insert(places[p].subject + "=" + json::serialize(value)).second)
          changes_.push_back({d, p, std::move(value)});
  }
}

std::optional<JsonSweep::Changed> JsonSweep::at(std::size_t number) const {
  if (number >= changes_.size()) return std::nullopt;
  const Change& change = changes_[number];
  json::value document = documents_[change.document];
  *placesIn(document)[change.place].value = change.value;
  return Changed{change.document, std::move(document)};
}

}  // namespace muster::fuzz
