#include "tests/fuzz/json_places.h"

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
  json::value* const value = place.value;
  if (auto* const array = value->if_array()) {
    for (auto& element : *array) collect({&element, value, place.field + "[]", place.subject + "[]"}, places);
  } else if (auto* const object = value->if_object()) {
    const std::string_view kind = kindOf(*object);
    const std::string subject = kind.empty() ? place.subject : std::string(kind);
    for (auto& [key, inner] : *object)
      collect({&inner, value, std::string(key), subject + "." + std::string(key)}, places);
  }
}

}  // namespace

std::vector<Place> placesIn(json::value& document) {
  std::vector<Place> places;
  collect({&document, nullptr, "", ""}, places);
  return places;
}

}  // namespace muster::fuzz
