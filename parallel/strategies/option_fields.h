#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/core/base/fields.h"

namespace muster::detail {

/// Describes the option `updaterState` of a strategy.
inline constexpr std::string_view kUpdaterStateField = "what a merge does with the updater's state";

/// The longest round, and the longest period of a strategy.
inline constexpr std::int64_t kMostIterations = std::int64_t{1} << 40;

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
      bool found = false;
      const auto take = [&]<typename U>(std::type_identity<U>) {
        if (names[i++] != type) return;
        value.template emplace<U>();
        found = true;
      };
      (take(std::type_identity<T>()), ...);
      std::string known;
      for (const auto word : names) known.append(known.empty() ? "" : ", ").append(word);
      require(found, "there is no type \"{}\"; there are {}", type, known);
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
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value.emplace());
  require(error == std::errc{} && rest == end, "{} must be a number or none, got \"{}\"", name, text);
}

/// Visits a list of numbers as text with commas, an empty list as the word `empty`.
inline void listField(Fields& fields, std::string_view name, std::vector<double>& values,
                      std::string_view empty) {
  std::string text;
  for (const double value : values) text += fmt::format("{}{}", text.empty() ? "" : ",", value);
  if (values.empty()) text = empty;
  fields.field(name, text);
  values.clear();
  if (text == empty) return;
  const char *at = text.data(), *const end = at + text.size();
  for (bool more = true; more;) {
    const auto [rest, error] = std::from_chars(at, end, values.emplace_back());
    more = rest != end;
    require(error == std::errc{} && (!more || *rest == ','),
            "{} must be {} or numbers as in \"1,0.5\", got \"{}\"", name, empty, text);
    at = rest + (more ? 1 : 0);
  }
}

}  // namespace muster::detail
