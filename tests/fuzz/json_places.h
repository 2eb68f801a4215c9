#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

namespace muster::fuzz {

/// A value within a JSON document.
struct Place {
  boost::json::value* value;
  boost::json::value* parent;  ///< null: the outermost
  std::string field;           ///< its name; "FIELD[]" for an element of an array
  std::string subject;  ///< path from the nearest object with a "type" or "format", beginning with that
};

/// All values of a document, each before those within it.
std::vector<Place> placesIn(boost::json::value& document);

}  // namespace muster::fuzz
