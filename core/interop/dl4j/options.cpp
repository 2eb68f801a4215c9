#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <optional>
#include <span>

#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/options.h"

namespace muster::dl4j::detail {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostProblems = 20;
constexpr std::int64_t kMostCount = (std::int64_t{1} << 31) - 1;
constexpr std::size_t kMostCounts = 16;

std::optional<std::int64_t> countIn(const json::value& value) {
  std::int64_t count = -1;
  if (value.is_int64()) count = value.get_int64();
  if (value.is_double() && value.get_double() == std::floor(value.get_double()) &&
      std::abs(value.get_double()) <= static_cast<double>(kMostCount))
    count = static_cast<std::int64_t>(value.get_double());
  if (count < 0 || count > kMostCount) return std::nullopt;
  return count;
}

}  // namespace

void Problems::add(std::string_view place, std::string_view text) {
  std::string problem = place.empty() ? std::string(text) : fmt::format("{}: {}", place, text);
  if (std::ranges::find(texts_, problem) == texts_.end()) texts_.push_back(std::move(problem));
}

std::string Problems::text() const {
  const auto first = std::span(texts_).first(std::min(texts_.size(), kMostProblems));
  std::string all = fmt::format("{}", fmt::join(first, "; "));
  if (texts_.size() > kMostProblems) all += fmt::format("; and {} more", texts_.size() - kMostProblems);
  return all;
}

std::string_view shortName(std::string_view className) {
  const auto at = className.find_last_of(".$");
  return at == className.npos ? className : className.substr(at + 1);
}

std::string Options::type() const {
  const json::value* name = object_->if_contains("@class");
  return name != nullptr && name->is_string() ? std::string(shortName(name->get_string())) : std::string();
}

const json::value* Options::find(std::initializer_list<std::string_view> names) const {
  for (const auto name : names)
    if (const json::value* value = object_->if_contains(name); value != nullptr && !value->is_null())
      return value;
  return nullptr;
}

double Options::number(std::initializer_list<std::string_view> names, double preset) const {
  const json::value* value = find(names);
  if (value == nullptr) return preset;
  // Jackson writes what JSON lacks as texts.
  if (value->is_string() && value->get_string() == "NaN") return preset;
  if (value->is_number()) return value->to_number<double>();
  refuse(fmt::format("{} is not a number", *names.begin()));
  return preset;
}

std::int64_t Options::count(std::initializer_list<std::string_view> names, std::int64_t preset) const {
  const json::value* value = find(names);
  if (value == nullptr) return preset;
  if (const auto number = countIn(*value)) return *number;
  refuse(fmt::format("{} is not a whole number from 0 to {}", *names.begin(), kMostCount));
  return preset;
}

bool Options::flag(std::string_view name, bool preset) const {
  const json::value* value = find({name});
  if (value == nullptr) return preset;
  if (value->is_bool()) return value->get_bool();
  refuse(fmt::format("{} is not true or false", name));
  return preset;
}

std::string Options::word(std::initializer_list<std::string_view> names, std::string_view preset) const {
  const json::value* value = find(names);
  if (value == nullptr) return std::string(preset);
  if (value->is_string()) return std::string(value->get_string());
  refuse(fmt::format("{} is not a text", *names.begin()));
  return std::string(preset);
}

std::vector<std::int64_t> Options::counts(std::string_view name) const {
  const json::value* value = find({name});
  std::vector<std::int64_t> all;
  if (value == nullptr) return all;
  if (value->is_number()) return {count({name}, 0)};
  if (value->is_array() && value->get_array().size() <= kMostCounts)
    for (const auto& element : value->get_array())
      if (const auto number = countIn(element)) all.push_back(*number);
  if (!value->is_array() || all.size() != value->get_array().size()) {
    refuse(fmt::format("{} is not a list of whole numbers", name));
    all.clear();
  }
  return all;
}

std::array<std::int64_t, 2> Options::pair(std::string_view name, std::int64_t preset) const {
  const auto all = counts(name);
  if (all.empty()) return {preset, preset};
  if (all.size() == 1) return {all[0], all[0]};
  if (all.size() > 2) refuse(fmt::format("{} has {} numbers instead of 2", name, all.size()));
  return {all[0], all[1]};
}

std::vector<std::string> Options::words(std::string_view name) const {
  const json::value* value = find({name});
  std::vector<std::string> all;
  if (value == nullptr) return all;
  if (value->is_array())
    for (const auto& element : value->get_array())
      if (element.is_string()) all.emplace_back(element.get_string());
  if (!value->is_array() || all.size() != value->get_array().size())
    refuse(fmt::format("{} is not a list of texts", name));
  return all;
}

Options Options::object(std::initializer_list<std::string_view> names, std::string_view inside) const {
  static const json::object none;
  const json::value* value = find(names);
  if (value != nullptr && !value->is_object()) refuse(fmt::format("{} is not an object", *names.begin()));
  return {value != nullptr && value->is_object() ? value->get_object() : none,
          inside.empty() ? place_ : std::string(inside), *problems_};
}

}  // namespace muster::dl4j::detail
