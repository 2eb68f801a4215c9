#include "muster/core/comparison/tuned_field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "muster/core/base/comma_list.h"

namespace muster {
namespace {

std::optional<double> numberIn(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

bool isSame(std::string_view a, std::string_view b) {
  const auto number = numberIn(a);
  return a == b || (number && number == numberIn(b));
}

}  // namespace

TunedField TunedField::of(std::string_view text) {
  const auto equals = text.find('=');
  TunedField field{.name = std::string(text.substr(0, equals)), .values = {}};
  if (equals == text.npos) return field;
  for (const auto value : commaList(text.substr(equals + 1))) field.values.emplace_back(value);
  return field;
}

std::string TunedField::text() const {
  return fmt::format("{}={}", name, fmt::join(values, ","));
}

bool TunedField::has(std::string_view value) const {
  return std::ranges::any_of(values, [&](const std::string& one) { return isSame(one, value); });
}

std::optional<std::vector<std::string>> joinTuning(std::span<const std::string> before,
                                                   std::span<const std::string> now) {
  if (before.size() != now.size()) return std::nullopt;
  std::vector<std::string> joined;
  for (const auto& text : before) {
    auto field = TunedField::of(text);
    const auto same =
        std::ranges::find(now, field.name, [](const auto& one) { return TunedField::of(one).name; });
    if (same == now.end()) return std::nullopt;
    for (auto& value : TunedField::of(*same).values)
      if (!field.has(value)) field.values.push_back(std::move(value));
    joined.push_back(field.text());
  }
  return joined;
}

}  // namespace muster
