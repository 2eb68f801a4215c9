#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/base/fields.h"

namespace muster {

/// Collects visited fields into a JSON object, in the order of the visit.
/// Besides visited options it takes plain values with `put`, for result files. Doubles are written exactly;
/// NaN and infinity, which JSON lacks, as null. What is not UTF-8 becomes an escape in words, as in
/// printableText.
class JsonWriter final : public Fields {
 public:
  JsonWriter();
  ~JsonWriter() override;
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  using Fields::field;
  void field(std::string_view name, bool& value) override { put(name, value); }
  void field(std::string_view name, std::int64_t& value) override { put(name, value); }
  void field(std::string_view name, std::uint64_t& value) override { put(name, value); }
  void field(std::string_view name, double& value) override { put(name, value); }
  void field(std::string_view name, std::string& value) override { put(name, std::string_view(value)); }
  void field(std::string_view name, Shape& value) override;
  void choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) override;
  void object(std::string_view name, std::string& type, const std::function<void(Fields&)>& inside) override;

  void put(std::string_view name, bool value);
  void put(std::string_view name, int value) { put(name, std::int64_t{value}); }
  void put(std::string_view name, std::int64_t value);
  void put(std::string_view name, std::uint64_t value);
  void put(std::string_view name, double value);
  void put(std::string_view name, std::string_view value);
  void put(std::string_view name, const char* value) { put(name, std::string_view(value)); }
  void put(std::string_view name, std::span<const double> values);
  void put(std::string_view name, std::span<const std::string> values);
  void numbers(std::string_view name, const std::vector<double>& values) { put(name, std::span(values)); }
  /// A field whose value is JSON text, as from `MultiLayerConfiguration::toJson()`.
  /// @throws InvalidArgument if it is not valid JSON.
  void putJson(std::string_view name, std::string_view json);
  /// A field that is an object, filled by `inside`.
  void group(std::string_view name, const std::function<void(JsonWriter&)>& inside);
  /// A field that is an array of `count` objects; `element` fills number i.
  void list(std::string_view name, std::size_t count,
            const std::function<void(std::size_t, JsonWriter&)>& element);

  /// The object so far as formatted text; ends with a newline.
  std::string text() const;
  /// As above, on one line without a newline.
  std::string line() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Fills visited fields from a JSON object. A field that the text lacks keeps its value; a value of the wrong
/// type is refused, and at the end of the visit a field that was not visited. Every error is an
/// InvalidArgument that begins with the path of the field, as in `layers[2].kernel`.
class JsonReader final : public Fields {
 public:
  /// @throws InvalidArgument if `text` is not valid JSON (naming line and column) or not an object.
  explicit JsonReader(std::string_view text);
  ~JsonReader() override;
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  using Fields::field;
  void field(std::string_view name, bool& value) override;
  void field(std::string_view name, std::int64_t& value) override;
  void field(std::string_view name, std::uint64_t& value) override;
  void field(std::string_view name, double& value) override;
  void field(std::string_view name, std::string& value) override;
  void field(std::string_view name, Shape& value) override;
  void choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) override;
  void object(std::string_view name, std::string& type, const std::function<void(Fields&)>& inside) override;

  /// A field that is an array of objects: `element` reads each of them, and is finished for it.
  void list(std::string_view name, const std::function<void(JsonReader&)>& element);

  /// A field that is an object without a "type": `inside` reads it, and is finished for it.
  void group(std::string_view name, const std::function<void(JsonReader&)>& inside);

  /// A field that is an array of numbers.
  void numbers(std::string_view name, std::vector<double>& values);

  /// A field of any kind, as JSON text, for another reader; nothing if there is none.
  std::optional<std::string> json(std::string_view name);

  /// A field that is an array of strings.
  void strings(std::string_view name, std::vector<std::string>& values);

  /// @throws InvalidArgument if there is no field of this name.
  void requireField(std::string_view name) const;
  /// Ends the visit. @throws InvalidArgument naming a field that was not visited, the nearest that was, and
  ///         all of them.
  void finish() const;

 private:
  struct Impl;
  explicit JsonReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
