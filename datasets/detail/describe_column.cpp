#include "muster/datasets/detail/describe_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"
#include "muster/datasets/detail/date_order.h"
#include "muster/datasets/detail/number_text.h"

namespace muster::detail {
namespace {

constexpr double kIdentifierShare = 0.9;  // of words that differ in a column that identifies rows
constexpr std::int64_t kLeastRows = 3;    // that have a word with a feature of its own
constexpr std::size_t kMostWords = 256;   // with a feature of their own
constexpr std::size_t kFewNumbers = 5;    // different ones: their ranks say no more than they do
constexpr std::size_t kMostQuantiles = 65;
constexpr std::string_view kNoValue = "no row has a value", kOneValue = "every row has ",
                           kCounter = "its whole numbers count the rows";
constexpr double kMagnitudes = 100;  // the largest by the median one in a column of many magnitudes

using Described = std::variant<ColumnDescription, OmittedColumn>;

/// A column's values in the training rows.
struct Values {
  std::int64_t missing = 0;
  std::int64_t marks = 0;  // not missing, but they would be among numbers
  std::vector<double> numbers;
  std::map<std::string_view, std::int64_t> words;  // [cell] rows, of all cells that are not missing
  std::int64_t commas = 0;                         // numbers with a decimal comma
  std::int64_t tooLarge = 0;                       // numbers that float32 does not reach
  std::string_view other;                          // the first cell that is none
  std::int64_t lineOfOther = 0;

  std::int64_t present(std::span<const std::int64_t> rows) const { return std::ssize(rows) - missing; }
  void setOther(const Table& table, std::int64_t row, std::string_view cell) {
    other = cell;
    lineOfOther = table.line(row);
  }
};

Values valuesIn(const Table& table, std::size_t column, std::span<const std::int64_t> rows) {
  Values values;
  for (const auto row : rows) {
    const auto cell = table.cell(row, column);
    if (isMissing(cell)) {
      ++values.missing;
      continue;
    }
    ++values.words[cell];
    if (isMissingNumber(cell)) {
      ++values.marks;
    } else if (const auto number = numberIn(cell)) {
      values.numbers.push_back(*number);
    } else {
      if (values.other.empty()) values.setOther(table, row, cell);
      values.commas += hasDecimalComma(cell);
      values.tooLarge += exceedsFloat(cell);
    }
  }
  return values;
}

/// The middle value, or the mean of the two in the middle. @param values  not empty.
double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

/// Whether each number is one more than the one before, or each one less, as numbers of orders are. Smaller
/// ones may be ages or temperatures, and those from 1500 to 2200 years.
bool areConsecutive(const std::vector<double>& numbers) {
  constexpr std::size_t kLeast = 20;  // fewer may be so by chance
  if (numbers.size() < kLeast) return false;
  const double step = numbers[1] - numbers[0];
  const auto [least, most] = std::minmax(numbers.front(), numbers.back());
  return std::abs(step) == 1 && least >= 1000 && (least < 1500 || most > 2200) &&
         std::ranges::adjacent_find(numbers, [&](double one, double next) { return next != one + step; }) ==
             numbers.end();
}

/// Whether the whole numbers of all rows, also of those that are held out, differ and count from 0 or 1, with
/// a few left out, or from 1000 or more one by one in the order of the rows.
bool countsRows(const Table& table, std::size_t column, const NumberText& text) {
  std::vector<double> numbers;
  for (std::int64_t row = 0; row < table.rows(); ++row)
    if (const auto number = numberIn(table.cell(row, column), text)) numbers.push_back(*number);
  const bool consecutive = areConsecutive(numbers);
  std::ranges::sort(numbers);
  const bool whole = std::ranges::all_of(numbers, [](double x) { return x == std::floor(x); });
  const bool differ = std::ranges::adjacent_find(numbers) == numbers.end();
  const auto count = static_cast<double>(numbers.size());
  return whole && (consecutive || (differ && count > 2 && (numbers.front() == 0 || numbers.front() == 1) &&
                                   numbers.back() <= 1.5 * count + 1));
}

/// The scale of a logarithm for values of many magnitudes, else 0.
double logScaleOf(const std::vector<double>& numbers) {
  std::vector<double> magnitudes;
  for (const double x : numbers)
    if (x != 0) magnitudes.push_back(std::abs(x));
  if (magnitudes.empty()) return 0;
  const double middle = median(magnitudes);
  return *std::ranges::max_element(magnitudes) > kMagnitudes * middle ? middle : 0;
}

/// Evenly spaced quantiles, the smallest and the largest value included; none of few different values.
std::vector<double> quantilesOf(std::vector<double> numbers) {
  if (std::set(numbers.begin(), numbers.end()).size() <= kFewNumbers) return {};
  std::ranges::sort(numbers);
  const std::size_t count = std::min(kMostQuantiles, numbers.size());
  std::vector<double> quantiles;
  for (std::size_t q = 0; q < count; ++q)
    quantiles.push_back(numbers[q * (numbers.size() - 1) / (count - 1)]);
  return quantiles;
}

/// Warns of values of a column of numbers or dates that are none. @param kind  what they should be: "number".
void warnOfOthers(const Table& table, std::size_t column, const Values& values, std::int64_t others,
                  std::string_view kind) {
  logWarning("column {}: {} no {}{}, as {} in line {}: {} as missing", csvField(table.names()[column]),
             others == 1 ? "1 value is" : fmt::format("{} values are", others), kind, others == 1 ? "" : "s",
             quoteJson(values.other), values.lineOfOther, others == 1 ? "it counts" : "they count");
}

/// Says that whole numbers with a zero at the front, which may be codes, are read as numbers.
void logZeros(const std::string& name, const Values& values) {
  for (const auto& [cell, rows] : values.words)
    if (cell.size() > 1 && cell.front() == '0' && cell.find_first_not_of("0123456789") == cell.npos)
      return logInfo(
          "column {}: {} is read as the number {}; if it is a code, letters before it make it a word",
          csvField(name), quoteJson(cell), numberIn(cell).value_or(0));
}

/// Says that numbers that are all dates as 20211231 are read as numbers.
void logPackedDates(const std::string& name, const Values& values) {
  constexpr std::size_t kLeast = 3;  // different ones; fewer may be so by chance
  const auto dateIn = [](std::string_view cell) {
    if (cell.size() != 8 || cell < "1900" || cell >= "2101") return std::string();
    auto date = fmt::format("{}-{}-{}", cell.substr(0, 4), cell.substr(4, 2), cell.substr(6));
    return daysIn(date, DateOrder::YearMonthDay) ? date : std::string();
  };
  if (values.words.size() < kLeast ||
      std::ranges::any_of(values.words, [&](const auto& word) { return dateIn(word.first).empty(); }))
    return;
  const auto first = values.words.begin()->first;
  logInfo("column {}: {} is read as a number, as all its values; if they are dates, write {}", csvField(name),
          quoteJson(first), dateIn(first));
}

/// @param others  values that are neither numbers nor missing.
Described numbersIn(const Table& table, std::size_t column, const Values& values, std::int64_t others,
                    bool named, const NumberText& text = {}) {
  const auto& name = table.names()[column];
  if (!named && countsRows(table, column, text)) return OmittedColumn{name, std::string(kCounter)};
  if (others > 0)
    warnOfOthers(table, column, values, others,
                 values.tooLarge == others ? "number within float32's 3.4e38" : "number");
  logZeros(name, values);
  logPackedDates(name, values);
  return ColumnDescription{.name = name,
                           .kind = ColumnKind::Number,
                           .filling = median(values.numbers),
                           .missing = values.missing + values.marks + others > 0,
                           .wordsAreMissing = others > 0,
                           .text = text,
                           .logScale = logScaleOf(values.numbers),
                           .quantiles = quantilesOf(values.numbers)};
}

/// The values of a column that `read` reads: the days of its dates, or numbers that are written otherwise.
template <typename Read>
Values readBy(const Read& read, Values values, const Table& table, std::size_t column,
              std::span<const std::int64_t> rows) {
  values.numbers.clear();
  values.tooLarge = 0;
  values.other = {};
  for (const auto row : rows) {
    const auto cell = table.cell(row, column);
    if (isMissingNumber(cell)) continue;
    if (const std::optional<double> number = read(cell))
      values.numbers.push_back(*number);
    else if (values.other.empty())
      values.setOther(table, row, cell);
  }
  return values;
}

/// The separators of dates that other orders do not read, or as other days; all if the order was given.
std::string separatorsIn(const Values& values, DateOrder order, bool given) {
  using enum DateOrder;
  if (order == YearMonthDay) return {};
  if (given) return std::string(kDateSeparators);
  std::set<char> separators;
  for (const auto& [cell, rows] : values.words)
    if (const char separator = separatorOfDate(cell);
        separator != 0 && daysIn(cell, MonthDayYear) != daysIn(cell, DayMonthYear))
      separators.insert(separator);
  return {separators.begin(), separators.end()};
}

/// @param given  whether the order was.
ColumnDescription dateColumn(const std::string& name, const Values& values, DateOrder order, bool given,
                             bool others) {
  const auto& days = values.numbers;
  const auto [first, last] = std::ranges::minmax(days);
  const bool byDay = std::ranges::any_of(values.words, [&](const auto& word) {
    return daysIn(word.first, order).has_value() && namesDay(word.first);
  });
  return {.name = name,
          .kind = ColumnKind::Date,
          .filling = median(days),
          .missing = values.missing + values.marks > 0 || others,
          .order = order,
          .separators = separatorsIn(values, order, given),
          .year = last - first > 366,
          .week = byDay && last - first > 14,
          .day = std::ranges::any_of(days, [](double d) { return d != std::floor(d); })};
}

/// Whether a value looks like a number or a date: it has more digits than letters.
bool looksMeasured(std::string_view cell) {
  std::int64_t digits = 0, letters = 0;
  for (const char c : cell) {
    digits += c >= '0' && c <= '9';
    letters += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
  }
  return digits > letters;
}

/// Refuses dates in another order than the column's: they are no missing values.
void requireOneOrder(const Table& table, std::size_t column, const Values& values, DateOrder order) {
  for (const auto& [cell, rows] : values.words)
    if (!daysIn(cell, order) &&
        (daysIn(cell, DateOrder::MonthDayYear) || daysIn(cell, DateOrder::DayMonthYear)))
      throw FileError(table.origin(),
                      fmt::format("column {} has dates in several orders: {} is none with the order "
                                  "{} (data.dateOrder); write all in one order",
                                  csvField(table.names()[column]), quoteJson(cell), nameOf(order)));
}

/// A time of the day, as "14:05" or "14:05:30"; "" if not nearly all values are one.
std::string_view timeAmong(const Values& values, std::int64_t meant) {
  std::int64_t times = 0;
  std::string_view one;
  for (const auto& [cell, rows] : values.words)
    if (cell.find(':') != cell.npos && daysIn(fmt::format("2000-01-01 {}", cell), DateOrder::YearMonthDay)) {
      times += rows;
      one = cell;
    }
  return nearlyAll(times, meant) ? one : std::string_view();
}

/// Why a column of words that nearly all differ has no numbers and dates, after "; "; "" if it does not look
/// as if it had.
std::string unreadText(const Values& values, std::int64_t meant, const std::string& datesProblem) {
  if (!datesProblem.empty()) return "; " + datesProblem;
  std::int64_t measured = 0;
  for (const auto& [cell, rows] : values.words) measured += looksMeasured(cell) ? rows : 0;
  if (!nearlyAll(measured, meant)) return {};
  return fmt::format("; {} is read neither as a number nor as a date", quoteJson(values.other));
}

Described wordsIn(const std::string& name, const Values& values, std::int64_t present) {
  const auto different = std::ssize(values.words);
  const auto problem = datesProblem(values.words, present - values.marks);
  if (present >= 10 && static_cast<double>(different) >= kIdentifierShare * static_cast<double>(present))
    return OmittedColumn{
        name, "nearly every row has another word" + unreadText(values, present - values.marks, problem)};
  if (!problem.empty()) logWarning("column {}: {}; they are read as words", csvField(name), problem);
  if (const auto time = timeAmong(values, present - values.marks); !time.empty())
    logWarning(
        "column {}: its times of the day, as {}, are read as words; write them with a date, or as "
        "numbers of minutes",
        csvField(name), quoteJson(time));
  std::vector<std::pair<std::int64_t, std::string>> frequent;
  for (const auto& [word, count] : values.words)
    if (count >= kLeastRows || different == 2) frequent.emplace_back(-count, word);
  std::ranges::sort(frequent);
  if (frequent.size() > kMostWords) frequent.resize(kMostWords);
  ColumnDescription column{.name = name, .kind = ColumnKind::Words, .missing = values.missing > 0};
  for (const auto& [count, word] : frequent) column.words.push_back(word);
  std::ranges::sort(column.words);
  column.others = different > std::ssize(column.words);
  if (column.words.empty())
    return OmittedColumn{name, fmt::format("no word is in {} rows or more", kLeastRows)};
  return column;
}

}  // namespace

Described describeColumn(const Table& table, std::size_t column, std::span<const std::int64_t> rows,
                         std::optional<DateOrder> dateOrder, bool named) {
  const auto& name = table.names()[column];
  const Values values = valuesIn(table, column, rows);
  const auto present = values.present(rows);
  if (present == 0) return OmittedColumn{name, std::string(kNoValue)};
  if (values.words.size() == 1 && values.missing == 0)
    return OmittedColumn{name, fmt::format("{}{}", kOneValue, quoteJson(values.words.begin()->first))};
  const auto meant = present - values.marks;  // values, if this is a column of numbers or dates
  const auto numbers = std::ssize(values.numbers);
  requireNotTiny(table, name, values.numbers);
  if (values.commas == 0 && nearlyAll(numbers, meant))
    return numbersIn(table, column, values, meant - numbers, named);
  if (const auto dates = datesOf(values.words, dateOrder); nearlyAll(dates.rows, meant)) {
    const auto read =
        readBy([&](auto cell) { return daysIn(cell, dates.order); }, values, table, column, rows);
    const auto others = meant - dates.rows;
    if (others > 0) requireOneOrder(table, column, values, dates.order);
    logReading(name, values.words, dates);
    if (others > 0) warnOfOthers(table, column, read, others, "date");
    return dateColumn(name, read, dates.order, dateOrder.has_value(), others > 0);
  }
  if (const auto text = numberTextOf(table, column, values.words)) {
    const auto read = readBy([&](auto cell) { return numberIn(cell, *text); }, values, table, column, rows);
    return numbersIn(table, column, read, meant - std::ssize(read.numbers), named, *text);
  }
  if (values.commas > 0 && nearlyAll(numbers + values.commas, meant))
    throw FileError(table.origin(), fmt::format("column {} has decimal commas, as {}; write points",
                                                csvField(name), quoteJson(values.other)));
  if (values.tooLarge > 0 && nearlyAll(numbers + values.tooLarge, meant))
    throw FileError(table.origin(),
                    fmt::format("column {} has numbers beyond 3.4e38, the range of float32, as "
                                "{}; write them in another unit",
                                csvField(name), quoteJson(values.other)));
  return wordsIn(name, values, present);
}

bool hasFewValues(const OmittedColumn& column) {
  return column.reason == kNoValue || column.reason.starts_with(kOneValue);
}

bool isCounter(const OmittedColumn& column) {
  return column.reason == kCounter;
}

void requireNotTiny(const Table& table, std::string_view column, std::span<const double> numbers) {
  double largest = 0;
  for (const double x : numbers) largest = std::max(largest, std::abs(x));
  if (largest > 0 && largest < std::numeric_limits<float>::min())
    throw FileError(
        table.origin(),
        fmt::format("column {} has no number above {}, and float32 counts from 1.2e-38; write them "
                    "in another unit",
                    csvField(column), largest));
}

}  // namespace muster::detail
