#pragma once

#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/core/base/comma_list.h"
#include "muster/core/base/fields.h"
#include "muster/core/base/nearest_word.h"

namespace muster::detail {

/// As in "average, keep or reset".
inline std::string orList(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text.append(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ").append(words[i]);
  return text;
}

/// Throws InvalidArgument, as in `there is no option "rat"; the nearest is rate, of every, momentum, rate`.
[[noreturn]] inline void refuseUnknown(std::string_view what, std::string_view word,
                                       const std::vector<std::string>& known) {
  const auto hint = known.empty() ? "; it has none" : nearestOfHint(word, known);
  throw InvalidArgument(fmt::format("there is no {} \"{}\"{}", what, word, hint));
}

/// Reads a number, which must be the whole text. @return false if it is not.
template <typename T>
bool readNumber(std::string_view text, T& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && rest == text.data() + text.size();
}

/// Describes the option `updaterState` of a strategy.
inline constexpr std::string_view kUpdaterStateField = "what a merge does with the updater's state";

/// The longest round, and the longest period of a strategy.
inline constexpr std::int64_t kMostIterations = std::int64_t{1} << 40;
inline constexpr std::string_view kIterationsRange = "[1, 1099511627776]";

/// @throws InvalidArgument naming the option unless it is between 1 and 2^40 iterations.
inline void requireIterations(std::string_view option, std::int64_t value) {
  require(value >= 1 && value <= kMostIterations, "{} must be between 1 and {}, got {}", option,
          kMostIterations, value);
}

/// Checks the options that most rules have. @param rule  begins the message.
template <typename Options>
void validateParts(const Options& options, std::string_view rule) {
  options.frequency.validate(rule);
  validate(options.updaterState);
  validate(options.codec, rule);
}

/// Visits a variant as an object whose type is one of `names`, in the order of the alternatives.
/// @param each  `void each(Fields&, T&)` visits the fields of an alternative.
template <typename... T, typename Each>
void variantField(Fields& fields, std::string_view name, std::variant<T...>& value,
                  const std::array<std::string_view, sizeof...(T)>& names, const Each& each) {
  std::string type(names[value.index()]);
  fields.object(name, type, [&](Fields& inside) {
    if (type != names[value.index()]) {
      std::size_t i = 0;
      const bool found = ((names[i++] == type && (value.template emplace<T>(), true)) || ...);
      require(found, "there is no type \"{}\"; there are {}", type, fmt::join(names, ", "));
    }
    std::visit([&](auto& alternative) { each(inside, alternative); }, value);
  });
}

/// Visits an option that may be empty, as the text "none" or a number.
template <typename T>
void optionalField(Fields& fields, std::string_view name, std::optional<T>& value) {
  constexpr std::string_view kNone = "none";
  std::string text = value ? fmt::format("{}", *value) : std::string(kNone);
  fields.field(name, text);
  if (text == kNone) return value.reset();
  require(readNumber(text, value.emplace()), "{} must be a number or none, got \"{}\"", name, text);
}

/// Visits a list of numbers as text with commas, an empty list as the word `empty`.
inline void listField(Fields& fields, std::string_view name, std::vector<double>& values,
                      std::string_view empty) {
  std::string text = values.empty() ? std::string(empty) : fmt::format("{}", fmt::join(values, ","));
  fields.field(name, text);
  values.clear();
  if (text == empty) return;
  for (const auto number : commaList(text))
    require(readNumber(number, values.emplace_back()), "{} must be {} or numbers as in \"1,0.5\", got \"{}\"",
            name, empty, text);
}

}  // namespace muster::detail
