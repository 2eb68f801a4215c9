#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fuzz {

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
  void addDocument(const std::string& field, const boost::json::value& value);
  void addWords(const boost::json::value& schema);

  std::map<std::string, std::vector<boost::json::value>, std::less<>> values_;  // [field]
};

}  // namespace muster::fuzz
