#include "muster/core/comparison/tuned_field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/core/base/comma_list.h"
#include "muster/core/base/number_text.h"

namespace muster {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

bool isSame(std::string_view a, std::string_view b) {
  const auto number = parsedNumber(a);
  return a == b || (number && number == parsedNumber(b));
}

}  // namespace

TunedField TunedField::of(std::string_view text) {
  const auto equals = text.find('=');
  TunedField field{.name = std::string(trimmed(text.substr(0, equals))), .values = {}};
  if (equals == text.npos) return field;
  for (const auto value : commaList(text.substr(equals + 1))) field.values.emplace_back(trimmed(value));
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
    const auto known = TunedField::of(text);
    const auto same =
        std::ranges::find(now, known.name, [](const auto& one) { return TunedField::of(one).name; });
    if (same == now.end()) return std::nullopt;
    TunedField all{.name = known.name, .values = {}};
    for (const auto& values : {known.values, TunedField::of(*same).values})
      for (const auto& value : values)
        if (!all.has(value)) all.values.push_back(value);
    joined.push_back(all.text());
  }
  return joined;
}

}  // namespace muster
