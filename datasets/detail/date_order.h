#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "muster/core/data/input_description.h"

namespace muster::detail {

// Below `words` are [cell] rows with this value, without missing ones.

/// How a column's dates are read.
struct Dates {
  DateOrder order = DateOrder::YearMonthDay;
  std::int64_t rows = 0;  ///< whose values are dates
  std::string_view
      ambiguous;  ///< a date that another order reads otherwise, if nearly all fit that one; or ""
};

/// The order in which most values are dates: of several the year first, then the day after dots ("3.4.2020")
/// and else the month. None are dates if some have the month first and some the day.
/// @param wanted  which of month and day is first where the year is last, if it is known.
Dates datesOf(const std::map<std::string_view, std::int64_t>& words, std::optional<DateOrder> wanted);

/// Says how dates are read that could mean others. @param name  of the column.
void logReading(const std::string& name, const std::map<std::string_view, std::int64_t>& words,
                const Dates& dates);

/// Why values that look like dates are none, as they are: their parts are in several orders, or it is not
/// said which is the year. "" if they do not look like dates. @param meant  values in all.
std::string datesProblem(const std::map<std::string_view, std::int64_t>& words, std::int64_t meant);

}  // namespace muster::detail
