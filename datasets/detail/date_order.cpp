#include "muster/datasets/detail/date_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "muster/core/base/log.h"
#include "muster/core/base/text_table.h"
#include "muster/core/io/json_value.h"
#include "muster/datasets/cell_values.h"
#include "muster/datasets/detail/number_text.h"

namespace muster::detail {
namespace {

using Words = std::map<std::string_view, std::int64_t>;  // [cell] rows

std::int64_t datesIn(const Words& words, DateOrder order) {
  std::int64_t dates = 0;
  for (const auto& [cell, rows] : words)
    if (!isMissingNumber(cell) && daysIn(cell, order)) dates += rows;
  return dates;
}

/// As "2020-12-31".
std::string dayText(double days) {
  const std::chrono::year_month_day date(std::chrono::sys_days(std::chrono::year(2000) / 1 / 1) +
                                         std::chrono::days(static_cast<int>(std::floor(days))));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

bool hasLongYear(std::string_view cell) {
  std::size_t digits = 0;
  for (const char c : cell) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits == 4) return true;
  }
  return false;
}

}  // namespace

Dates datesOf(const Words& words, std::optional<DateOrder> wanted) {
  using enum DateOrder;
  if (wanted) return {.order = *wanted, .rows = datesIn(words, *wanted), .ambiguous = {}};
  Dates best{.order = YearMonthDay, .rows = datesIn(words, YearMonthDay), .ambiguous = {}};
  const auto monthFirst = datesIn(words, MonthDayYear), dayFirst = datesIn(words, DayMonthYear);
  if (std::max(monthFirst, dayFirst) <= best.rows) return best;
  const auto other = std::ranges::find_if(words, [](const auto& word) {
    const auto month = daysIn(word.first, MonthDayYear), day = daysIn(word.first, DayMonthYear);
    return month && day && *month != *day;
  });
  const bool both = monthFirst == dayFirst && other != words.end();
  const bool dots = both && other->first.find('.') < other->first.find_first_of("/-: ");
  best.order = dayFirst > monthFirst || dots ? DayMonthYear : MonthDayYear;
  best.rows = std::max(monthFirst, dayFirst);
  if (both) best.ambiguous = other->first;
  return best;
}

void logReading(const std::string& name, const Words& words, const Dates& dates) {
  if (!dates.ambiguous.empty()) {
    const bool dayFirst = dates.order == DateOrder::DayMonthYear;
    return logWarning(
        "column {}: its dates may have the day or the month first, and {} is read as {}, the {} first; "
        "data.dateOrder={} reads the {} first",
        csvField(name), quoteJson(dates.ambiguous), dayText(*daysIn(dates.ambiguous, dates.order)),
        dayFirst ? "day" : "month", dayFirst ? "monthDayYear" : "dayMonthYear", dayFirst ? "month" : "day");
  }
  for (const auto& [cell, rows] : words)
    if (const auto day = daysIn(cell, dates.order); day && !hasLongYear(cell))
      return logInfo("column {}: {} is read as the date {}", csvField(name), quoteJson(cell), dayText(*day));
}

std::string datesProblem(const Words& words, std::int64_t meant) {
  using enum DateOrder;
  std::int64_t some = 0, shortYears = 0;
  std::string_view monthFirst, dayFirst, shortYear;
  for (const auto& [cell, rows] : words) {
    const bool month = daysIn(cell, MonthDayYear).has_value(), day = daysIn(cell, DayMonthYear).has_value();
    some += month || day || daysIn(cell, YearMonthDay) ? rows : 0;
    if (month && !day) monthFirst = cell;
    if (day && !month) dayFirst = cell;
    if (const auto whole = "20" + std::string(cell);
        cell.find('-') == 2 && !hasLongYear(cell) && daysIn(whole, YearMonthDay) && namesDay(whole)) {
      shortYears += rows;
      shortYear = cell;
    }
  }
  if (nearlyAll(shortYears, meant))
    return fmt::format(
        "it is not said whether its dates begin with the year, as {}; write the year with four digits",
        quoteJson(shortYear));
  if (nearlyAll(some, meant) && !monthFirst.empty() && !dayFirst.empty())
    return fmt::format(
        "some of its dates have the month first and some the day, as {} and {}; write all in "
        "one order",
        quoteJson(monthFirst), quoteJson(dayFirst));
  return {};
}

}  // namespace muster::detail
