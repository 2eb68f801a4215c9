#include "muster/datasets/detail/unknown_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"

namespace muster::detail {
namespace {

constexpr std::size_t kMostShown = 3;

/// Without blanks, "_" and "-", and with small letters (of ASCII).
std::string essence(std::string_view word) {
  std::string text;
  for (const char c : word)
    if (std::string_view(" \t_-").find(c) == std::string_view::npos)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// A word in quotes, with the known one that looks like it.
std::string shown(std::string_view word, const std::vector<std::string>& known) {
  const auto twin = std::ranges::find_if(known, [&](const auto& other) { return looksLike(word, other); });
  return twin == known.end() ? quoteJson(word)
                             : fmt::format("{} (known is {})", quoteJson(word), quoteJson(*twin));
}

}  // namespace

bool looksLike(std::string_view one, std::string_view other) {
  return essence(one) == essence(other);
}

void logUnknownWords(const InputDescription& description, const Table& table) {
  for (const auto& column : description.columns) {
    const auto place = table.find(column.name);
    const bool words = column.kind == ColumnKind::Words;
    if (!place || !(words || column.wordsAreMissing)) continue;
    const auto isKnown = [&](std::string_view cell) {
      return words ? isMissing(cell) || std::ranges::binary_search(column.words, cell)
                   : isMissingNumber(cell) || numberIn(cell, column.text).has_value();
    };
    std::set<std::string_view> unknown;
    std::int64_t rows = 0;
    for (std::int64_t row = 0; row < table.rows(); ++row) {
      const auto cell = table.cell(row, *place);
      if (isKnown(cell)) continue;
      unknown.insert(cell);
      ++rows;
    }
    if (unknown.empty()) continue;
    std::vector<std::string> some;
    for (const auto word : unknown)
      if (some.size() < kMostShown) some.push_back(shown(word, column.words));
    logInfo(
        "column {}: {} {} {} {}: {}{}", column.name, plural(rows, "row"), rows == 1 ? "has" : "have",
        unknown.size() == 1 ? "a word" : "words",
        words ? "for which the model has no feature" : "where it has numbers, as if the number were missing",
        fmt::join(some, ", "), unknown.size() > kMostShown ? ", ..." : "");
  }
}

}  // namespace muster::detail
