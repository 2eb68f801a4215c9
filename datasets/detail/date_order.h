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
      ambiguous;            ///< a date that another order reads otherwise, if nearly all fit that one; or ""
  std::string_view unsure;  ///< else a date as `UnsureDates::first`, or ""
};

/// All that `separatorOfDate` finds.
inline constexpr std::string_view kDateSeparators = "-./";

/// As "2020-12-31". @param days  since 2000.
std::string dayText(double days);

/// Finds dates that one order reads, and another one as other days, with a separator with which no date says
/// which of the two it is: 05.09.2021 beside 09/27/2021.
class UnsureDates {
 public:
  /// @param known  separators with which dates have this order.
  explicit UnsureDates(DateOrder order, std::string_view known = {}) : order_(order), known_(known) {}
  void add(std::string_view cell);
  /// The first one, which must live on; "" if there is none.
  std::string_view first() const;
  /// As the other order reads it.
  double otherDays(std::string_view cell) const;

 private:
  DateOrder order_;
  std::string_view known_;
  std::map<char, std::string_view> dates_ = {};  // [separator] the first date; "" if a date says its order
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
