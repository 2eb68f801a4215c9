#include "tests/fuzz/vocabulary.h"

namespace muster::fuzz {

namespace json = boost::json;

Vocabulary::Vocabulary(std::span<const json::value> documents, const json::value& schema) {
  for (const auto& document : documents) addDocument("", document);
  addWords(schema);
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

void Vocabulary::addDocument(const std::string& field, const json::value& value) {
  add(field, value);
  if (const auto* const array = value.if_array())
    for (const auto& element : *array) addDocument(field + "[]", element);
  if (const auto* const object = value.if_object())
    for (const auto& [key, inner] : *object) addDocument(key, inner);
}

void Vocabulary::addWords(const json::value& schema) {
  if (const auto* const array = schema.if_array())
    for (const auto& element : *array) addWords(element);
  const auto* const object = schema.if_object();
  if (object == nullptr) return;
  const auto* const properties = object->if_contains("properties");
  if (properties != nullptr && properties->is_object())
    for (const auto& [key, of] : properties->get_object())
      if (const auto* const words = of.is_object() ? of.get_object().if_contains("enum") : nullptr)
        for (const auto& word : words->as_array()) add(key, word);
  for (const auto& [key, inner] : *object) addWords(inner);
}

}  // namespace muster::fuzz
