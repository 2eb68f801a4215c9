#pragma once

#include <boost/json/value.hpp>

#include "tests/support/standard.h"

namespace muster::fuzz {

std::optional<boost::json::value> jsonIn(std::string_view text);

/// A value within a JSON document.
struct Place {
  boost::json::value* value;
  std::string field;    ///< its name; "FIELD[]" for an element of an array
  std::string subject;  ///< path from the nearest object with a "type" or "format", beginning with that
};

/// All values of a document, each before those within it.
std::vector<Place> placesIn(boost::json::value& document);

/// The values that fields have in some documents, and the words that a JSON Schema allows, by the field's
/// name.
class Vocabulary {
 public:
  Vocabulary() = default;
  explicit Vocabulary(std::span<const boost::json::value> documents, const boost::json::value& schema = {});

  /// The different values of a field; none of an unknown one. An array's elements are the values of
  /// "FIELD[]".
  std::span<const boost::json::value> of(std::string_view field) const;

 private:
  void add(const std::string& field, const boost::json::value& value);

  std::map<std::string, std::vector<boost::json::value>, std::less<>> values_;  // [field]
};

}  // namespace muster::fuzz
