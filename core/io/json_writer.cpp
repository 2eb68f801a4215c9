#include "muster/core/base/printable_text.h"
#include "muster/core/base/utf8.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/io/json_value.h"

namespace muster {

namespace json = boost::json;

namespace {

/// JSON is UTF-8, but a path need not be: other bytes become escapes in words, as on the page.
json::string textOf(std::string_view text) {
  return json::string(isUtf8(text) ? std::string(text) : printableText(text));
}

}  // namespace

struct JsonWriter::Impl {
  json::object object;
};

JsonWriter::JsonWriter() : impl_(std::make_unique<Impl>()) {}
JsonWriter::~JsonWriter() = default;

void JsonWriter::put(std::string_view name, bool value) {
  impl_->object[name] = value;
}
void JsonWriter::put(std::string_view name, std::int64_t value) {
  impl_->object[name] = value;
}
void JsonWriter::put(std::string_view name, std::uint64_t value) {
  impl_->object[name] = value;
}
void JsonWriter::put(std::string_view name, double value) {
  impl_->object[name] = value;
}
void JsonWriter::put(std::string_view name, std::string_view value) {
  impl_->object[name] = textOf(value);
}

void JsonWriter::put(std::string_view name, std::span<const double> values) {
  impl_->object[name] = json::array(values.begin(), values.end());
}

void JsonWriter::put(std::string_view name, std::span<const std::string> values) {
  json::array array;
  for (const auto& value : values) array.emplace_back(textOf(value));
  impl_->object[name] = std::move(array);
}

void JsonWriter::putJson(std::string_view name, std::string_view text) {
  impl_->object[name] = parseJson(text);
}

void JsonWriter::field(std::string_view name, Shape& value) {
  impl_->object[name] = json::array(value.begin(), value.end());
}

void JsonWriter::choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) {
  put(name, names[index]);
}

void JsonWriter::object(std::string_view name, std::string& type,
                        const std::function<void(Fields&)>& inside) {
  group(name, [&](JsonWriter& writer) {
    writer.put("type", std::string_view(type));
    inside(writer);
  });
}

void JsonWriter::group(std::string_view name, const std::function<void(JsonWriter&)>& inside) {
  JsonWriter writer;
  inside(writer);
  impl_->object[name] = std::move(writer.impl_->object);
}

void JsonWriter::list(std::string_view name, std::size_t count,
                      const std::function<void(std::size_t, JsonWriter&)>& element) {
  json::array array;
  for (std::size_t i = 0; i < count; ++i) {
    JsonWriter writer;
    element(i, writer);
    array.push_back(std::move(writer.impl_->object));
  }
  impl_->object[name] = std::move(array);
}

std::string JsonWriter::text() const {
  return printJson(impl_->object);
}

std::string JsonWriter::line() const {
  return printJsonLine(impl_->object);
}

}  // namespace muster
