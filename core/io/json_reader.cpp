#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/io/json_value.h"
#include "muster/core/optim/schedule.h"
#include "muster/core/optim/schedules.h"

namespace muster {

namespace json = boost::json;

namespace {

/// An error whose text already begins with a path.
class LocatedError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

/// Runs `visit`; adds the path to errors without one.
template <typename Visit>
void locate(const std::string& path, const Visit& visit) {
  try {
    visit();
  } catch (const LocatedError&) {
    throw;
  } catch (const InvalidArgument& error) {
    throw LocatedError(fmt::format("{}: {}", path, error.what()));
  }
}

std::optional<std::int64_t> wholeNumber(const json::value& value) {
  constexpr double kMostExact = 9007199254740992;  // 2^53: up to here each whole number is a double
  if (value.is_int64()) return value.get_int64();
  if (value.is_double() && std::abs(value.get_double()) <= kMostExact &&
      std::trunc(value.get_double()) == value.get_double())
    return static_cast<std::int64_t>(value.get_double());  // as 2.0, of programs without whole numbers
  return std::nullopt;  // the parser uses uint64 only beyond the range of int64
}

std::optional<std::uint64_t> wholeNumberFromZero(const json::value& value) {
  if (value.is_uint64()) return value.get_uint64();
  if (const auto whole = wholeNumber(value); whole && *whole >= 0) return static_cast<std::uint64_t>(*whole);
  return std::nullopt;
}

std::optional<double> number(const json::value& value) {
  if (value.is_double()) return value.get_double();
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  return std::nullopt;
}

std::optional<Shape> shape(const json::value& value) {
  const auto* array = value.if_array();
  if (array == nullptr || array->size() > Shape::kMaxRank) return std::nullopt;
  std::vector<std::int64_t> sizes;
  for (const auto& element : *array) {
    const auto size = wholeNumber(element);
    if (!size || *size < 0) return std::nullopt;
    sizes.push_back(*size);
  }
  return Shape(sizes);
}

}  // namespace

struct JsonReader::Impl {
  std::shared_ptr<const json::value> document;  // keeps `object` alive
  const json::object* object = nullptr;
  std::string path;  // of the object; empty for the outermost
  std::vector<std::string> asked;

  std::string pathOf(std::string_view name) const {
    return path.empty() ? std::string(name) : path + "." + std::string(name);
  }

  const json::value* find(std::string_view name) {
    if (std::ranges::find(asked, name) == asked.end()) asked.emplace_back(name);
    return object->if_contains(name);
  }

  template <typename T, typename Convert>
  void read(std::string_view name, T& target, const Convert& convert, std::string_view expected) {
    const json::value* value = find(name);
    if (value == nullptr) return;
    const std::optional<T> converted = convert(*value);
    if (!converted) refuse(pathOf(name), expected, *value);
    target = *converted;
  }

  [[noreturn]] static void refuse(const std::string& where, std::string_view expected,
                                  const json::value& found) {
    throw LocatedError(fmt::format("{}: expected {}, found {}", where, expected, describeJson(found)));
  }

  /// An object in place of a shorter form.
  static std::unique_ptr<Impl> made(json::object object, std::string path) {
    auto impl = std::make_unique<Impl>();
    impl->document = std::make_shared<const json::value>(std::move(object));
    impl->object = &impl->document->get_object();
    impl->path = std::move(path);
    return impl;
  }

  std::unique_ptr<Impl> child(const json::value& value, std::string childPath) const {
    if (!value.is_object()) refuse(childPath, "an object", value);
    auto impl = std::make_unique<Impl>();
    impl->document = document;
    impl->object = &value.get_object();
    impl->path = std::move(childPath);
    return impl;
  }
};

JsonReader::JsonReader(std::string_view text) : impl_(std::make_unique<Impl>()) {
  impl_->document = std::make_shared<const json::value>(parseJson(text));
  require(impl_->document->is_object(), "expected a JSON object, found {}", describeJson(*impl_->document));
  impl_->object = &impl_->document->get_object();
}

JsonReader::JsonReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JsonReader::~JsonReader() = default;

void JsonReader::field(std::string_view name, bool& value) {
  const auto convert = [](const json::value& v) {
    return v.is_bool() ? std::optional(v.get_bool()) : std::nullopt;
  };
  impl_->read(name, value, convert, "true or false");
}

void JsonReader::field(std::string_view name, std::int64_t& value) {
  impl_->read(name, value, wholeNumber, "a whole number");
}

void JsonReader::field(std::string_view name, std::uint64_t& value) {
  impl_->read(name, value, wholeNumberFromZero, "a whole number from 0 to 18446744073709551615");
}

void JsonReader::field(std::string_view name, double& value) {
  impl_->read(name, value, number, "a number");
}

void JsonReader::field(std::string_view name, std::string& value) {
  const auto convert = [](const json::value& v) -> std::optional<std::string> {
    if (!v.is_string()) return std::nullopt;
    return std::string(v.get_string());
  };
  impl_->read(name, value, convert, "a string");
}

void JsonReader::field(std::string_view name, Shape& value) {
  // One number is all sizes of a fixed count, or else the only one.
  const auto sizes = [rank = value.empty() ? 1 : value.rank()](const json::value& v) {
    const auto all = wholeNumber(v);
    if (!all || *all < 0) return shape(v);
    return std::optional(Shape(std::vector(static_cast<std::size_t>(rank), *all)));
  };
  impl_->read(name, value, sizes,
              fmt::format("a whole number or an array of at most {} whole numbers", Shape::kMaxRank));
}

void JsonReader::choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) {
  std::string word(names[index]);
  field(name, word);
  const auto found = std::ranges::find(names, word);
  if (found == names.end())
    throw LocatedError(
        fmt::format("{}: there is no \"{}\"{}", impl_->pathOf(name), word,
                    nearestOfHint(word, std::vector<std::string>(names.begin(), names.end()))));
  index = static_cast<std::size_t>(found - names.begin());
}

void JsonReader::object(std::string_view name, std::string& type,
                        const std::function<void(Fields&)>& inside) {
  const json::value* value = impl_->find(name);
  if (value == nullptr) return;
  if (const auto plain = number(*value); plain && Schedule::registry().contains(type)) {
    JsonReader reader(impl_->made({{"value", *plain}}, impl_->pathOf(name)));
    type = FixedSchedule::kType;
    return locate(reader.impl_->path, [&] { inside(reader); });
  }
  if (value->is_string()) {
    JsonReader reader(impl_->made({}, impl_->pathOf(name)));
    const auto& schedules = Schedule::registry();
    if (schedules.contains(type) && !schedules.contains(value->get_string()))
      Impl::refuse(impl_->pathOf(name),
                   R"(a number, or a schedule as in {"type": "cosine", "initial": 0.1, "epochs": 10})",
                   *value);
    type = value->get_string();
    return locate(reader.impl_->path, [&] { inside(reader); });
  }
  JsonReader reader(impl_->child(*value, impl_->pathOf(name)));
  reader.requireField("type");
  reader.field("type", type);
  locate(reader.impl_->path, [&] { inside(reader); });
  reader.finish();
}

void JsonReader::group(std::string_view name, const std::function<void(JsonReader&)>& inside) {
  const json::value* value = impl_->find(name);
  if (value == nullptr) return;
  JsonReader reader(impl_->child(*value, impl_->pathOf(name)));
  locate(reader.impl_->path, [&] { inside(reader); });
  reader.finish();
}

void JsonReader::numbers(std::string_view name, std::vector<double>& values) {
  const auto convert = [](const json::value& v) -> std::optional<std::vector<double>> {
    if (!v.is_array()) return std::nullopt;
    std::vector<double> all;
    for (const auto& element : v.get_array()) {
      const auto one = number(element);
      if (!one) return std::nullopt;
      all.push_back(*one);
    }
    return all;
  };
  impl_->read(name, values, convert, "an array of numbers");
}

std::optional<std::string> JsonReader::json(std::string_view name) {
  const json::value* value = impl_->find(name);
  if (value == nullptr) return std::nullopt;
  return printJson(*value);
}

void JsonReader::strings(std::string_view name, std::vector<std::string>& values) {
  const auto convert = [](const json::value& v) -> std::optional<std::vector<std::string>> {
    if (!v.is_array()) return std::nullopt;
    std::vector<std::string> words;
    for (const auto& element : v.get_array()) {
      if (!element.is_string()) return std::nullopt;
      words.emplace_back(element.get_string());
    }
    return words;
  };
  impl_->read(name, values, convert, "an array of strings");
}

void JsonReader::list(std::string_view name, const std::function<void(JsonReader&)>& element) {
  const json::value* value = impl_->find(name);
  if (value == nullptr) return;
  if (!value->is_array()) Impl::refuse(impl_->pathOf(name), "an array of objects", *value);
  std::size_t index = 0;
  for (const auto& item : value->get_array()) {
    JsonReader reader(impl_->child(item, fmt::format("{}[{}]", impl_->pathOf(name), index++)));
    locate(reader.impl_->path, [&] { element(reader); });
    reader.finish();
  }
}

void JsonReader::requireField(std::string_view name) const {
  if (!impl_->object->contains(name)) throw LocatedError(fmt::format("{}: is missing", impl_->pathOf(name)));
}

void JsonReader::finish() const {
  for (const auto& [key, value] : *impl_->object)
    if (impl_->asked.empty())
      throw LocatedError(fmt::format("{}: there are no fields here", impl_->pathOf(key)));
    else if (std::ranges::find(impl_->asked, std::string_view(key)) == impl_->asked.end())
      throw LocatedError(
          fmt::format("{}: there is no such field{}", impl_->pathOf(key), nearestOfHint(key, impl_->asked)));
}

}  // namespace muster
