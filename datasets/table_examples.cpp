#include "muster/datasets/table_examples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"
#include "muster/datasets/detail/class_names.h"
#include "muster/datasets/detail/csv_rows.h"
#include "muster/datasets/detail/date_order.h"
#include "muster/datasets/detail/unknown_words.h"

namespace muster {
namespace {

/// What a cell must be, as the model learned it.
std::string wanted(const ColumnDescription& column, std::string_view cell) {
  if (column.kind == ColumnKind::Date && column.order == DateOrder::YearMonthDay)
    return "a date as 2020-12-31 (year, month, day)";
  if (column.kind == ColumnKind::Date) {
    const bool dayFirst = column.order == DateOrder::DayMonthYear;
    const char separator = column.separators.empty() ? '/' : column.separators.front();
    return fmt::format("a date as {}{}{}{}2020 ({}, year)", dayFirst ? 31 : 12, separator, dayFirst ? 12 : 31,
                       separator, dayFirst ? "day, month" : "month, day");
  }
  const auto& [before, after, thousands] = column.text;
  if ((before.empty() && after.empty()) || exceedsFloat(cell, column.text))
    return std::string(numberWanted(cell, column.text));
  return fmt::format("a number as {}", quoteJson(before + "5" + (after.size() > 1 ? " " : "") + after));
}

[[noreturn]] void failAt(const Table& table, std::int64_t row, const ColumnDescription& column,
                         std::string_view cell, const std::string& more = {}) {
  detail::failAtLine(table.origin(), table.line(row),
                     fmt::format("column {} must be {}, and is {}{}", csvField(column.name),
                                 wanted(column, cell), quoteJson(cell), more));
}

/// Whether a value is no word, but a number or date in another writing: it does not count as missing.
bool isReadOtherwise(const ColumnDescription& column, std::string_view cell) {
  using enum DateOrder;
  if (column.kind == ColumnKind::Date)
    return daysIn(cell, MonthDayYear) || daysIn(cell, DayMonthYear) || daysIn(cell, YearMonthDay);
  const auto& [before, after, thousands] = column.text;
  if (!before.empty() && cell.starts_with(before)) cell.remove_prefix(before.size());
  if (!after.empty() && cell.ends_with(after)) cell.remove_suffix(after.size());
  return hasDecimalComma(cell);
}

constexpr std::int64_t kLeastOthers = 3;

/// The values of a column of numbers or dates.
struct Counts {
  std::int64_t read = 0;
  std::int64_t others = 0;      // neither read nor missing
  std::int64_t firstOther = 0;  // its row
};

/// A few words among numbers are gaps; more are another column, unit or decimal sign.
/// @throws FileError naming the first of these values.
void requireFew(const Table& table, const ColumnDescription& column, std::size_t place,
                const Counts& counts) {
  const auto& [read, others, first] = counts;
  if (others < kLeastOthers || others <= read) return;
  failAt(table, first, column, table.cell(first, place),
         fmt::format("; {} of its {} values are none, too many to count as missing", others, read + others));
}

/// What is unsure of dates with a separator that the training did not have, which may have another order.
struct UnsureOrder {
  std::int64_t line;
  std::string text;
  bool surely = true;  // the training did not have the separator
};

/// The first date that two orders read differently, unless another date with its separator says the order.
std::optional<UnsureOrder> unsureOrder(const Table& table, const ColumnDescription& column, std::size_t place,
                                       std::span<const std::int64_t> rows) {
  if (column.kind != ColumnKind::Date) return {};
  const bool dayFirst = column.order == DateOrder::DayMonthYear;
  // A file of an earlier version does not say which separators there were.
  const bool old = column.separators.empty();
  const std::string_view usual = dayFirst ? "." : "-/";
  detail::UnsureDates unsure(column.order, old ? usual : std::string_view(column.separators));
  for (const auto row : rows) unsure.add(table.cell(row, place));
  const auto cell = unsure.first();
  if (cell.empty()) return {};
  const auto row = std::ranges::find(rows, cell, [&](std::int64_t r) { return table.cell(r, place); });
  const auto problem = fmt::format(
      "column {}: {} is {} with the {} first, as was learned{}, and {} with the {} first; no date with "
      "\"{}\" "
      "says which",
      csvField(column.name), quoteJson(cell), detail::dayText(*daysIn(cell, column.order)),
      dayFirst ? "day" : "month",
      old ? "" : fmt::format(" of dates with \"{}\"", fmt::join(column.separators, "\" and \"")),
      detail::dayText(unsure.otherDays(cell)), dayFirst ? "month" : "day", separatorOfDate(cell));
  return UnsureOrder{table.line(*row), problem, !(old && dayFirst)};  // 31/12/2020 is frequent, too
}

void logUnsureOrder(const Table& table, const UnsureOrder& unsure) {
  logWarning("{}: line {}: {}; the order that was learned is taken", table.origin().string(), unsure.line,
             unsure.text);
}

/// Warns if the training may have had the separator. @throws FileError if it surely had not.
void requireKnownOrder(const Table& table, const ColumnDescription& column, std::size_t place,
                       std::span<const std::int64_t> rows) {
  const auto unsure = unsureOrder(table, column, place, rows);
  if (unsure && unsure->surely)
    detail::failAtLine(table.origin(), unsure->line,
                       unsure->text + "; write the year first, or data.dateOrder of a run file says it");
  if (unsure) logUnsureOrder(table, *unsure);
}

/// The place of a value among sorted ones, from 0 to 1: linear between two of them, the middle of those that
/// are equal to it.
double rankAmong(const std::vector<double>& sorted, double value) {
  const auto [first, last] = std::ranges::equal_range(sorted, value);
  const auto place = [&](auto at) { return static_cast<double>(at - sorted.begin()); };
  const double end = static_cast<double>(sorted.size() - 1);
  if (first != last) return (place(first) + place(last) - 1) / 2 / end;
  if (first == sorted.begin()) return 0;
  if (first == sorted.end()) return 1;
  const double below = *std::prev(first);
  return (place(first) - 1 + (value - below) / (*first - below)) / end;
}

/// Writes a number's features. @return the next place.
float* writeNumber(const ColumnDescription& column, double value, float* to) {
  *to++ = static_cast<float>(value);
  if (column.logScale > 0)
    *to++ = static_cast<float>(std::copysign(std::log1p(std::abs(value) / column.logScale), value));
  if (!column.quantiles.empty()) *to++ = static_cast<float>(rankAmong(column.quantiles, value));
  return to;
}

float* writeDate(const ColumnDescription& column, double days, float* to) {
  *to++ = static_cast<float>(days);
  const auto writeTurn = [&](double turns) {
    *to++ = static_cast<float>(std::cos(2 * std::numbers::pi * turns));
    *to++ = static_cast<float>(std::sin(2 * std::numbers::pi * turns));
  };
  if (column.year) writeTurn(days / 365.2425);
  if (column.week) {
    const auto weekday = static_cast<int>(std::floor(days) - 7 * std::floor((std::floor(days) + 5) / 7)) + 5;
    for (int d = 0; d < 7; ++d) *to++ = d == weekday ? 1.0f : 0.0f;  // 2000-01-01 was a Saturday
  }
  if (column.day) writeTurn(days - std::floor(days));
  return to;
}

float* writeWord(const ColumnDescription& column, std::string_view cell, float* to) {
  const auto found = std::ranges::lower_bound(column.words, cell);
  const bool known = found != column.words.end() && *found == cell;
  std::fill_n(to, column.words.size(), 0.0f);
  if (known) to[found - column.words.begin()] = 1;
  to += column.words.size();
  if (column.others) *to++ = known || isMissing(cell) ? 0.0f : 1.0f;
  return to;
}

float* writeCell(const ColumnDescription& column, const Table& table, std::int64_t row, std::size_t place,
                 Counts& counts, float* to) {
  const auto cell = table.cell(row, place);
  bool missing = column.kind == ColumnKind::Words ? isMissing(cell) : isMissingNumber(cell);
  if (column.kind == ColumnKind::Words) {
    to = writeWord(column, cell, to);
  } else {
    const bool date = column.kind == ColumnKind::Date;
    const auto value = missing ? std::nullopt
                       : date  ? daysIn(cell, column.order)
                               : numberIn(cell, column.text);
    if (value) ++counts.read;
    if (!missing && !value) {
      if (isReadOtherwise(column, cell)) failAt(table, row, column, cell);
      if (counts.others++ == 0) counts.firstOther = row;
    }
    missing = !value.has_value();
    to = date ? writeDate(column, value.value_or(column.filling), to)
              : writeNumber(column, value.value_or(column.filling), to);
  }
  if (column.missing) *to++ = missing ? 1.0f : 0.0f;
  return to;
}

/// Refuses a table whose columns have no names and may have other places than in the training.
void requireSamePlaces(const InputDescription& description, const Table& table) {
  const auto learned = description.unnamedColumns, here = std::ssize(table.names());
  if (learned == 0 || table.format().header || here == learned) return;
  const auto& label = description.targets.empty() ? description.label : description.targets.front().name;
  const bool labelLast = label == fmt::format("{}", learned);
  if (labelLast && here == learned - 1) return;  // new rows need none
  throw FileError(
      table.origin(),
      fmt::format(
          "has {} without names, and the training's table had {}; they are known by their places, so a "
          "table must have all of them, in the same order{}",
          plural(here, "column"), learned, labelLast ? "; the last one, the label, may be missing" : ""));
}

/// The places of columns in a table. @throws FileError naming all that are missing.
template <typename Columns>
std::vector<std::size_t> placesOf(const Table& table, const Columns& columns) {
  std::vector<std::size_t> places;
  std::vector<std::string> lacking;
  for (const auto& column : columns)
    if (const auto place = table.find(column.name))
      places.push_back(*place);
    else
      lacking.push_back(column.name);
  if (lacking.empty()) return places;
  throw FileError(table.origin(),
                  fmt::format("lacks the column{} {}, from which the model learned; it has {}",
                              lacking.size() == 1 ? "" : "s", csvList(lacking), csvList(table.names())));
}

}  // namespace

std::vector<std::int64_t> allRows(const Table& table) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(table.rows()));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  return rows;
}

void addDateSeparators(InputDescription& description, const Table& table,
                       std::span<const std::int64_t> rows) {
  for (auto& column : description.columns) {
    if (column.kind != ColumnKind::Date) continue;
    const auto place = *table.find(column.name);
    if (const auto unsure = unsureOrder(table, column, place, rows)) logUnsureOrder(table, *unsure);
    for (const auto row : rows)
      if (const char found = separatorOfDate(table.cell(row, place));
          found != 0 && column.separators.find(found) == std::string::npos)
        column.separators += found;
    std::ranges::sort(column.separators);
  }
}

Tensor tableFeatures(const InputDescription& description, const Table& table,
                     std::span<const std::int64_t> rows) {
  requireSamePlaces(description, table);
  const auto places = placesOf(table, description.columns);
  Tensor features = Tensor::empty({std::ssize(rows), description.features()});
  float* to = features.data<float>();
  std::vector<Counts> counts(places.size());  // [column]
  for (const auto row : rows)
    for (std::size_t c = 0; c < places.size(); ++c)
      to = writeCell(description.columns[c], table, row, places[c], counts[c], to);
  for (std::size_t c = 0; c < places.size(); ++c)
    requireFew(table, description.columns[c], places[c], counts[c]);
  for (std::size_t c = 0; c < places.size(); ++c)
    requireKnownOrder(table, description.columns[c], places[c], rows);
  return features;
}

Tensor tableLabels(const InputDescription& description, const Table& table,
                   std::span<const std::int64_t> rows) {
  if (!description.targets.empty()) {
    const auto places = placesOf(table, description.targets);
    Tensor labels = Tensor::empty({std::ssize(rows), std::ssize(places)});
    float* to = labels.data<float>();
    for (const auto row : rows)
      for (std::size_t t = 0; t < places.size(); ++t) {
        const auto& target = description.targets[t];
        const auto value = numberIn(table.cell(row, places[t]), target.text);
        if (!value)
          failAt(table, row, {.name = target.name, .text = target.text}, table.cell(row, places[t]));
        *to++ = static_cast<float>((*value - target.mean) / target.scale);
      }
    return labels;
  }
  const auto place = placesOf(table, std::array{TargetColumn{.name = description.label}}).front();
  const detail::ClassNumbers classes(description.classes);
  Tensor labels = Tensor::empty({std::ssize(rows)}, DType::Int64);
  std::int64_t* to = labels.data<std::int64_t>();
  for (const auto row : rows) {
    const auto found = classes.find(table.cell(row, place));
    if (!found)
      detail::failAtLine(table.origin(), table.line(row),
                         fmt::format("there is no class {}; there are {}",
                                     detail::withTwin(table.cell(row, place), description.classes),
                                     csvList(description.classes)));
    *to++ = *found;
  }
  return labels;
}

InMemoryDataSetIterator tableIterator(const InputDescription& description, const Table& table,
                                      std::span<const std::int64_t> rows, std::int64_t batch,
                                      std::optional<std::uint64_t> shuffleSeed) {
  InMemoryDataSetIterator iterator(tableFeatures(description, table, rows),
                                   tableLabels(description, table, rows), batch, shuffleSeed);
  iterator.setDescription(description);
  return iterator;
}

}  // namespace muster
