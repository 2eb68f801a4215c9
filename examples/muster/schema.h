#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <vector>

#include "muster/core/base/fields.h"

namespace program {

/// Collects visited fields as the properties of a JSON Schema, with their types and defaults.
class SchemaWriter final : public muster::Fields {
 public:
  using Fields::field;
  void field(std::string_view name, bool& value) override { add(name, "boolean", value); }
  void field(std::string_view name, std::int64_t& value) override { add(name, "integer", value); }
  void field(std::string_view name, std::uint64_t& value) override { add(name, "integer", value); }
  void field(std::string_view name, double& value) override { add(name, "number", value); }
  void field(std::string_view name, std::string& value) override {
    add(name, "string", boost::json::value(std::string_view(value)));
  }
  void field(std::string_view name, muster::Shape& value) override;
  void choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) override;
  void object(std::string_view name, std::string& type, const std::function<void(Fields&)>& inside) override;
  void numbers(std::string_view name, std::vector<double>& values);
  void group(std::string_view name, const std::function<void(SchemaWriter&)>& inside);
  /// Adds a field with a given schema.
  void put(std::string_view name, boost::json::object schema) { properties_[name] = std::move(schema); }

  /// @param closed  whether other fields are errors.
  boost::json::object schema(bool closed = true) const;

 private:
  void add(std::string_view name, std::string_view type, const boost::json::value& preset) {
    properties_[name] = boost::json::object{{"type", type}, {"default", preset}};
  }

  boost::json::object properties_;
};

/// The schema of run files, for editors: JSON Schema, draft 2020-12.
std::string runFileSchema();

}  // namespace program
