#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/fields.h"

namespace muster::detail {

/// The family (such as "schedule") of each type that `Fields::object` may visit.
using SchemaFamilies = std::map<std::string, std::string, std::less<>>;

/// Adds a range, as of `Fields::describe`, to the schema of a number or of a list of numbers; "": none.
void setRange(boost::json::object& schema, std::string_view range);

/// Collects visited fields as the properties of a JSON Schema (draft 2020-12), with their types and defaults.
class SchemaWriter final : public Fields {
 public:
  /// @param families  a visited object of such a type becomes a reference to `#/$defs/FAMILY`; one of another
  ///        type is described as it is, with this type alone. Must outlive the writer.
  explicit SchemaWriter(const SchemaFamilies* families = nullptr) : families_(families) {}

  using Fields::field;
  void field(std::string_view name, bool& value) override { add(name, "boolean", value); }
  void field(std::string_view name, std::int64_t& value) override { add(name, "integer", value); }
  void field(std::string_view name, std::uint64_t& value) override;
  void field(std::string_view name, double& value) override { add(name, "number", value); }
  void field(std::string_view name, std::string& value) override {
    add(name, "string", boost::json::value(std::string_view(value)));
  }
  /// A shape that has sizes by default always has as many, such as those of a kernel; one number is all of
  /// them. Of others it is the only size.
  void field(std::string_view name, Shape& value) override;
  void choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) override;
  void object(std::string_view name, std::string& type, const std::function<void(Fields&)>& inside) override;
  void numbers(std::string_view name, std::vector<double>& values);
  void group(std::string_view name, const std::function<void(SchemaWriter&)>& inside);
  void describe(std::string_view description, std::string_view range = {}) override {
    description_ = description;
    range_ = range;
  }
  /// Adds a field with a given schema, and the description and the range if `describe` gave them.
  void put(std::string_view name, boost::json::object schema);

  const boost::json::object& properties() const { return properties_; }
  /// An object with these fields alone.
  boost::json::object schema() const;

 private:
  void add(std::string_view name, std::string_view type, const boost::json::value& preset) {
    put(name, {{"type", type}, {"default", preset}});
  }

  const SchemaFamilies* families_;
  boost::json::object properties_;
  std::string description_, range_;  // of the next field; "": none
};

/// The schema of an object of a network whose `key` names a type, and whose other fields depend on it; those
/// whose defaults are out of range are required.
/// @param description  of `key`.
/// @param types  the schema of each type's object, by the type's name.
boost::json::object schemaOfTypes(std::string_view key, std::string_view description,
                                  const std::vector<std::pair<std::string, boost::json::object>>& types);

}  // namespace muster::detail
