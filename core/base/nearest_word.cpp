#include "muster/core/base/nearest_word.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "muster/core/base/comma_list.h"

namespace muster {
namespace {

/// Levenshtein's distance, where two neighbours that have changed places count as one change.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> earlier, before, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    earlier = std::exchange(before, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({before[j] + (a[i] == b[j] ? 0 : 1), row[j] + 1, before[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], earlier[j - 1] + 1);
    }
  }
  return row.back();
}

/// With small letters (of ASCII).
std::string small(std::string_view word) {
  std::string text(word);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

std::optional<std::string> nearestWord(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kLeastBeginning = 3;
  if (known.empty()) return {};
  const auto wanted = small(word);
  const std::string* longer = nullptr;
  const auto rank = [&](const std::string& one) { return std::pair(one.size(), distance(word, one)); };
  for (const auto& one : known)
    if (small(one).starts_with(wanted) && (longer == nullptr || rank(one) < rank(*longer))) longer = &one;
  if (longer != nullptr && word.size() >= kLeastBeginning) return *longer;
  const auto& nearest = *std::ranges::min_element(
      known, {}, [&](const auto& k) { return std::pair(distance(wanted, small(k)), distance(word, k)); });
  const auto changes = distance(wanted, small(nearest)), longest = std::max(word.size(), nearest.size());
  return changes <= (longest + 2) / 3 && changes < longest ? std::optional(nearest) : std::nullopt;
}

std::string nearestHint(std::string_view word, std::span<const std::string> known) {
  const auto nearest = nearestWord(word, known);
  return nearest ? fmt::format("; the nearest is {}", *nearest) : "";
}

std::string nearestInListHint(std::string_view word, std::string_view known) {
  std::vector<std::string> words;
  for (auto one : commaList(known))
    words.emplace_back(one.substr(std::min(one.find_first_not_of(' '), one.size())));
  return nearestHint(word, words);
}

std::string nearestOfHint(std::string_view word, std::span<const std::string> known) {
  if (known.empty()) return "; there are none";
  const auto hint = nearestHint(word, known);
  return fmt::format("{}{}", hint.empty() ? "; there are " : hint + ", of ", fmt::join(known, ", "));
}

}  // namespace muster
