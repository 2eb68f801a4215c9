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

/// A finite number that fits float32: decimal, with a sign or an exponent if need be, between spaces.
std::optional<double> numberIn(std::string_view cell);

/// As above, also with the column's unit, and with commas between thousands if it has them.
std::optional<double> numberIn(std::string_view cell, const NumberText& text);

/// A number with a decimal comma, as in "1,5".
bool hasDecimalComma(std::string_view cell);

/// The days since 2000-01-01, with a fraction for the time of day, of a date of the Gregorian calendar: three
/// numbers with "-", "/" or "." between them, the year with four digits; then perhaps a "T" or a space and
/// hours and minutes, with seconds and a fraction of them if need be; then perhaps Z or the difference from
/// UTC, which is applied.
std::optional<double> daysIn(std::string_view cell, DateOrder order);

}  // namespace muster
