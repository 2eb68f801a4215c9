#include "tests/fuzz/json_documents.h"

#include <boost/json/parse.hpp>

namespace muster::fuzz {
namespace {

namespace json = boost::json;

/// The word that says what an object is.
std::string_view kindOf(const json::object& object) {
  for (const auto* const name : {"type", "format"})
    if (const auto* const kind = object.if_contains(name); kind != nullptr && kind->is_string())
      return kind->get_string();
  return {};
}

void collect(Place place, std::vector<Place>& places) {
  places.push_back(place);
  if (auto* const array = place.value->if_array()) {
    for (auto& element : *array) collect({&element, place.field + "[]", place.subject + "[]"}, places);
  } else if (auto* const object = place.value->if_object()) {
    const std::string_view kind = kindOf(*object);
    const std::string subject = kind.empty() ? place.subject : std::string(kind);
    for (auto& [key, inner] : *object)
      collect({&inner, std::string(key), subject + "." + std::string(key)}, places);
  }
}

}  // namespace

std::optional<json::value> jsonIn(std::string_view text) {
  json::parse_options options;
  options.max_depth = 500;
  json::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error, {}, options);
  if (error) return std::nullopt;
  return value;
}

std::vector<Place> placesIn(json::value& document) {
  std::vector<Place> places;
  collect({&document, "", ""}, places);
  return places;
}

Vocabulary::Vocabulary(std::span<const json::value> documents, const json::value& schema) {
  for (json::value document : documents)
    for (const auto& place : placesIn(document)) add(place.field, *place.value);
  json::value words = schema;
  for (const auto& place : placesIn(words))
    if (const auto* const object = place.value->if_object())
      if (const auto* const all = object->if_contains("enum"); all != nullptr && all->is_array())
        for (const auto& word : all->get_array()) add(place.field, word);
}

std::span<const json::value> Vocabulary::of(std::string_view field) const {
  const auto found = values_.find(field);
  if (found == values_.end()) return {};
  return found->second;
}

void Vocabulary::add(const std::string& field, const json::value& value) {
  auto& known = values_[field];
  if (std::ranges::find(known, value) == known.end()) known.push_back(value);
}

}  // namespace muster::fuzz
