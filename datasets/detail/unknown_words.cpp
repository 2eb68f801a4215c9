#include "muster/datasets/detail/unknown_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"
#include "muster/datasets/detail/date_order.h"
#include "muster/datasets/table_examples.h"

namespace muster::detail {
namespace {

constexpr std::size_t kMostWordsShown = 3;

/// Letters of Latin-1 with a mark as a letter and a combining mark (Unicode's form NFD).
std::string decomposed(std::string_view word) {
  // [character from U+00C0] its letter; its mark by the name: grave, acute, circumflex, tilde, diaeresis,
  // ring and cedilla (e); a blank: it is a letter of its own.
  constexpr std::string_view kLetters = "AAAAAA CEEEEIIII NOOOOO  UUUUY  aaaaaa ceeeeiiii nooooo  uuuuy y",
                             kMarks = "gactdr egacdgacd tgactd  gacda  gactdr egacdgacd tgactd  gacda d",
                             kNames = "gactdre", kBytes = "\x80\x81\x82\x83\x88\x8A\xA7";
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool latin = word[i] == '\xC3' && i + 1 < word.size();
    const auto place = latin ? static_cast<unsigned char>(word[i + 1]) & 0x3Fu : 0u;
    if (!latin || kLetters[place] == ' ') {
      text += word[i];
      continue;
    }
    text += {kLetters[place], '\xCC', kBytes[kNames.find(kMarks[place])]};  // U+0300 to U+033F begin so
    ++i;
  }
  return text;
}

/// Decomposed, with small letters (of ASCII), and without blanks, "_" and "-" beside a letter between other
/// characters.
std::string essence(std::string_view given) {
  const auto word = decomposed(given);
  const auto isLetter = [&](std::size_t at) {
    const auto c = static_cast<unsigned char>(word[at]);
    return std::isalpha(c) != 0 || c >= 0x80;
  };
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool between = i > 0 && i + 1 < word.size() && (isLetter(i - 1) || isLetter(i + 1));
    if (!between || std::string_view(" \t_-").find(word[i]) == std::string_view::npos)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(word[i])));
  }
  return text;
}

/// Logs the words of a column that a model has no feature for, or that are no numbers or dates.
void logOthers(const ColumnDescription& column, const Table& table, std::span<const std::int64_t> rows) {
  const auto place = table.find(column.name);
  if (!place) return;
  const bool words = column.kind == ColumnKind::Words;
  std::map<std::string_view, std::int64_t> unknown;  // [word] its first line
  std::int64_t count = 0;
  for (const auto row : rows) {
    const auto cell = table.cell(row, *place);
    if (words ? isMissing(cell) || std::ranges::binary_search(column.words, cell) : isReadable(column, cell))
      continue;
    unknown.emplace(cell, table.line(row));
    ++count;
  }
  if (unknown.empty()) return;
  std::vector<std::string> some;
  for (const auto& [word, line] : unknown)
    if (some.size() < kMostWordsShown)
      some.push_back(words ? withTwin(word, column.words)
                           : fmt::format("{} in line {}", quoteJson(word), line));
  log(words ? LogLevel::Info : LogLevel::Warning,
      fmt::format("column {}: {} {} {} {}: {}{}", csvField(column.name), plural(count, "row"),
                  count == 1 ? "has" : "have", unknown.size() == 1 ? "a word" : "words",
                  words ? "for which the model has no feature"
                        : fmt::format("where it has {}s, as if the {} were missing", nameOf(column.kind),
                                      nameOf(column.kind)),
                  fmt::join(some, ", "), unknown.size() > kMostWordsShown ? ", ..." : ""));
}

/// Warns of numbers without the unit that those of the training had, if none has it.
void warnOfUnit(const ColumnDescription& column, const Table& table, std::span<const std::int64_t> rows) {
  const auto& unit = column.text.before.empty() ? column.text.after : column.text.before;
  const auto place = table.find(column.name);
  if (unit.empty() || !place) return;
  std::string_view first;
  for (const auto row : rows) {
    const auto cell = table.cell(row, *place);
    if (cell.find(unit) != cell.npos) return;
    if (first.empty() && numberIn(cell)) first = cell;
  }
  if (!first.empty())
    logWarning("column {}: no row has the unit {} that the model learned with; {} is read as if it had it",
               csvField(column.name), quoteJson(unit), quoteJson(first));
}

/// Warns of a column without any value, in which training rows had some.
void warnOfEmpty(const ColumnDescription& column, const Table& table, std::span<const std::int64_t> rows) {
  const auto place = table.find(column.name);
  const bool words = column.kind == ColumnKind::Words;
  if (!place || rows.empty() || (rows.size() == 1 && column.missing)) return;
  for (const auto row : rows)
    if (const auto cell = table.cell(row, *place); words ? !isMissing(cell) : !isMissingNumber(cell)) return;
  const auto filling =
      column.kind == ColumnKind::Date ? dayText(column.filling) : fmt::format("{}", column.filling);
  logWarning("column {}: {} no value{}; {}", csvField(column.name),
             rows.size() == 1 ? "the row has" : fmt::format("all {} rows have", rows.size()),
             column.missing ? "" : ", and no training row was without one",
             words ? "it counts as no word"
                   : fmt::format("the median of the training rows, {}, takes its place", filling));
}

}  // namespace

bool looksLike(std::string_view one, std::string_view other) {
  return essence(one) == essence(other);
}

std::string withTwin(std::string_view word, const std::vector<std::string>& known) {
  const auto twin = std::ranges::find_if(known, [&](const auto& other) { return looksLike(word, other); });
  if (twin == known.end()) return quoteJson(word);
  return fmt::format("{} (known is {}{})", quoteJson(word), quoteJson(*twin),
                     decomposed(word) == decomposed(*twin) ? ", in another Unicode form" : "");
}

bool isReadable(const ColumnDescription& column, std::string_view cell) {
  if (isMissingNumber(cell)) return true;
  return column.kind == ColumnKind::Date ? daysIn(cell, column.order).has_value()
                                         : numberIn(cell, column.text).has_value();
}

void logUnknownWords(const InputDescription& description, const Table& table,
                     std::span<const std::int64_t> rows) {
  const auto all = allRows(table);
  for (const auto& column : description.columns) {
    if (column.kind == ColumnKind::Words) logOthers(column, table, rows);
    warnOfUnit(column, table, all);
    warnOfEmpty(column, table, rows);
  }
  logStrayValues(description, table, rows);
}

void logUnknownWords(const InputDescription& description, const Table& table) {
  logUnknownWords(description, table, allRows(table));
}

void logStrayValues(const InputDescription& description, const Table& table,
                    std::span<const std::int64_t> rows) {
  for (const auto& column : description.columns)
    if (column.kind != ColumnKind::Words) logOthers(column, table, rows);
}

}  // namespace muster::detail
