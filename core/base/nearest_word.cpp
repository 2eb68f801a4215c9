#include "muster/core/base/nearest_word.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace muster {
namespace {

/// Levenshtein's distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> nearestWord(std::string_view word, std::span<const std::string> known) {
  if (known.empty()) return {};
  const auto& nearest = *std::ranges::min_element(known, {}, [&](const auto& k) { return distance(word, k); });
  const auto most = (std::max(word.size(), nearest.size()) + 2) / 3;
  return distance(word, nearest) <= most ? std::optional(nearest) : std::nullopt;
}

std::string nearestHint(std::string_view word, std::span<const std::string> known) {
  const auto nearest = nearestWord(word, known);
  return nearest ? fmt::format("; the nearest is {}", *nearest) : "";
}

std::string nearestOfHint(std::string_view word, std::span<const std::string> known) {
  if (known.empty()) return "; there are none";
  const auto hint = nearestHint(word, known);
  return fmt::format("{}{}", hint.empty() ? "; there are " : hint + ", of ", fmt::join(known, ", "));
}

}  // namespace muster
