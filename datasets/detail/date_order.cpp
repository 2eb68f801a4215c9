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

/// How many rows have dates.
struct Counts {
  std::int64_t yearFirst = 0, monthFirst = 0, dayFirst = 0;
  std::int64_t onlyMonthFirst = 0, onlyDayFirst = 0;
  std::string_view either;  // a date that the last two orders read differently
};

Counts countsOf(const Words& words) {
  using enum DateOrder;
  Counts counts;
  for (const auto& [cell, rows] : words) {
    if (isMissingNumber(cell)) continue;
    const auto month = daysIn(cell, MonthDayYear), day = daysIn(cell, DayMonthYear);
    counts.yearFirst += daysIn(cell, YearMonthDay) ? rows : 0;
    counts.monthFirst += month ? rows : 0;
    counts.dayFirst += day ? rows : 0;
    counts.onlyMonthFirst += month && !day ? rows : 0;
    counts.onlyDayFirst += day && !month ? rows : 0;
    if (counts.either.empty() && month && day && *month != *day) counts.either = cell;
  }
  return counts;
}

bool hasLongYear(std::string_view cell) {
  std::size_t digits = 0;
  for (const char c : cell) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits == 4) return true;
  }
  return false;
}

/// Whether it may be a date as "23-03-19".
bool beginsWithYear(std::string_view cell) {
  const auto whole = "20" + std::string(cell);
  return cell.find('-') == 2 && !hasLongYear(cell) && daysIn(whole, DateOrder::YearMonthDay) &&
         namesDay(whole);
}

/// Whether it is a date but for its year of two digits, as "3/19/45": with another year it is one.
bool isOfAnyCentury(std::string_view cell) {
  auto other = std::string(cell.substr(0, cell.find_first_of(" T", cell.find_last_of("/.-") + 1)));
  if (other.size() < 2 || hasLongYear(cell)) return false;
  other.replace(other.size() - 2, 2, "00");  // a leap year
  return daysIn(other, DateOrder::MonthDayYear) || daysIn(other, DateOrder::DayMonthYear);
}

/// The other one where the year is last.
DateOrder otherOf(DateOrder order) {
  return order == DateOrder::DayMonthYear ? DateOrder::MonthDayYear : DateOrder::DayMonthYear;
}

}  // namespace

std::string dayText(double days) {
  const std::chrono::year_month_day date(std::chrono::sys_days(std::chrono::year(2000) / 1 / 1) +
                                         std::chrono::days(static_cast<int>(std::floor(days))));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

void UnsureDates::add(std::string_view cell) {
  const char separator = order_ == DateOrder::YearMonthDay ? '\0' : separatorOfDate(cell);
  if (separator == 0 || known_.find(separator) != known_.npos) return;
  const auto days = daysIn(cell, order_), others = daysIn(cell, otherOf(order_));
  if (!others)
    dates_.insert_or_assign(separator, std::string_view());
  else if (days && *days != *others)
    dates_.emplace(separator, cell);
}

std::string_view UnsureDates::first() const {
  const auto found = std::ranges::find_if(dates_, [](const auto& date) { return !date.second.empty(); });
  return found == dates_.end() ? std::string_view() : found->second;
}

double UnsureDates::otherDays(std::string_view cell) const {
  return daysIn(cell, otherOf(order_)).value();
}

Dates datesOf(const Words& words, std::optional<DateOrder> wanted) {
  using enum DateOrder;
  const auto counts = countsOf(words);
  Dates dates{.order = YearMonthDay, .rows = counts.yearFirst, .ambiguous = {}, .unsure = {}};
  if (std::max(counts.monthFirst, counts.dayFirst) <= counts.yearFirst || wanted == YearMonthDay)
    return dates;
  if (!wanted && counts.onlyMonthFirst > 0 && counts.onlyDayFirst > 0) return {};  // datesProblem says why
  const bool dots = counts.either.find('.') < counts.either.find_first_of("/-: ");
  const bool dayFirst = wanted                                 ? *wanted == DayMonthYear
                        : counts.monthFirst != counts.dayFirst ? counts.dayFirst > counts.monthFirst
                                                               : dots;
  dates.order = dayFirst ? DayMonthYear : MonthDayYear;
  dates.rows = dayFirst ? counts.dayFirst : counts.monthFirst;
  // One row that only one order reads may be a mistake. A year that is first says nothing of the others.
  const auto other = dayFirst ? counts.monthFirst : counts.dayFirst;
  if (!wanted && nearlyAll(other - counts.yearFirst, dates.rows - counts.yearFirst))
    dates.ambiguous = counts.either;
  UnsureDates unsure(dates.order);
  for (const auto& [cell, rows] : words) unsure.add(cell);
  if (!wanted && dates.ambiguous.empty()) dates.unsure = unsure.first();
  return dates;
}

void logReading(const std::string& name, const Words& words, const Dates& dates) {
  const bool dayFirst = dates.order == DateOrder::DayMonthYear;
  if (!dates.ambiguous.empty())
    return logWarning(
        "column {}: its dates may have the day or the month first, and {} is read as {}, the {} first; "
        "data.dateOrder={} reads the {} first",
        csvField(name), quoteJson(dates.ambiguous), dayText(*daysIn(dates.ambiguous, dates.order)),
        dayFirst ? "day" : "month", dayFirst ? "monthDayYear" : "dayMonthYear", dayFirst ? "month" : "day");
  if (!dates.unsure.empty())
    logWarning(
        "column {}: {} is read as {}, the {} first as in other dates of it, and no date with \"{}\" says so; "
        "write all in one way",
        csvField(name), quoteJson(dates.unsure), dayText(*daysIn(dates.unsure, dates.order)),
        dayFirst ? "day" : "month", separatorOfDate(dates.unsure));
  std::optional<double> first, last;  // of the dates with years of two digits
  for (const auto& [cell, rows] : words)
    if (const auto day = daysIn(cell, dates.order); day && !hasLongYear(cell)) {
      first = std::min(first.value_or(*day), *day);
      last = std::max(last.value_or(*day), *day);
    }
  if (first)
    logInfo("column {}: its dates with years of two digits are read as {} to {}", csvField(name),
            dayText(*first), dayText(*last));
}

std::string datesProblem(const Words& words, std::int64_t meant) {
  using enum DateOrder;
  std::int64_t dates = 0, yearAnywhere = 0, anyCentury = 0;
  std::string_view monthFirst, dayFirst, unclear, old;
  for (const auto& [cell, rows] : words) {
    const bool month = daysIn(cell, MonthDayYear).has_value(), day = daysIn(cell, DayMonthYear).has_value();
    const bool date = month || day || daysIn(cell, YearMonthDay);
    dates += date ? rows : 0;
    if (month && !day) monthFirst = cell;
    if (day && !month) dayFirst = cell;
    if (!date && beginsWithYear(cell)) {
      yearAnywhere += rows;
      unclear = cell;
    }
    if (!date && isOfAnyCentury(cell)) {
      anyCentury += rows;
      old = cell;
    }
  }
  if (nearlyAll(yearAnywhere, meant))
    return fmt::format(
        "it is not said whether its dates begin with the year, as {}; write the year with four digits",
        quoteJson(unclear));
  if (anyCentury > 0 && nearlyAll(dates + anyCentury, meant))
    return fmt::format("years of two digits, as in {}, may be of either century; write four digits",
                       quoteJson(old));
  if (nearlyAll(dates, meant) && !monthFirst.empty() && !dayFirst.empty())
    return fmt::format(
        "some of its dates have the month first and some the day, as {} and {}; write all in one order",
        quoteJson(monthFirst), quoteJson(dayFirst));
  return {};
}

}  // namespace muster::detail
