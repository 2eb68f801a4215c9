#pragma once

#include <optional>
#include <string_view>

#include "muster/core/data/input_description.h"

namespace muster {

/// Without spaces and tabs at the ends.
std::string_view trimmed(std::string_view cell);

/// Whether a trimmed cell says that the value is missing: `""`, `?`, `NA`, `N/A`, `n/a`, `#N/A`, `<NA>`,
/// `NaN`, `nan`, `NULL`, `null`.
bool isMissing(std::string_view cell);

/// As above in a column of numbers or dates, where also -, ., None and none say so. As words they may mean
/// something.
bool isMissingNumber(std::string_view cell);

/// A finite number that fits float32: decimal, with a sign or an exponent if need be, between spaces. One too
/// small for a double is 0.
std::optional<double> numberIn(std::string_view cell);

/// As above, also with the column's unit, and with commas between thousands if it has them.
std::optional<double> numberIn(std::string_view cell, const NumberText& text);

/// Whether `numberIn` refuses a number only because float32 does not reach so far.
bool exceedsFloat(std::string_view cell, const NumberText& text = {});

/// A sentence's part on a cell that must be a number and is refused by `numberIn`: what it must be.
std::string_view numberWanted(std::string_view cell, const NumberText& text = {});

/// A number with a decimal comma, as in "1,5".
bool hasDecimalComma(std::string_view cell);

/// The days since 2000-01-01, with a fraction for the time of day, of a date of the Gregorian calendar: three
/// numbers with "-", "/" or "." between them; then perhaps a "T" or a space and hours and minutes, with
/// seconds and a fraction of them if need be; then perhaps Z or the difference from UTC, which is applied.
/// The year has four digits. Last and after "/" ("3/19/23"), "." ("03.04.23") or the name of a month it may
/// have two: 69 to 99 are 1969 to 1999, and 00 to 40 are 2000 to 2040.
/// In any order also a date whose year is first ("2023-03-19") or with the English name of its month
/// ("23-Mar-2016", "March 24, 2016"). Where the year is first also the first day of a quarter, month or week:
/// "2011 Q3", "2011 Jan", "2011-01", "2011-W05" (ISO 8601), with a space, "-" or "/" between.
std::optional<double> daysIn(std::string_view cell, DateOrder order);

/// The separator of a date of numbers alone whose year is last, as "/" of "3/19/2023"; 0 of all other cells.
char separatorOfDate(std::string_view cell);

/// Whether a date that `daysIn` reads names a day, and no quarter, month or week.
bool namesDay(std::string_view cell);

}  // namespace muster
