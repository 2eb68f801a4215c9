#include "muster/datasets/cell_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string>

namespace muster {
namespace {

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes a whole number of `least` to `most` digits from the front of a text.
std::optional<int> takeNumber(std::string_view& text, std::size_t least, std::size_t most) {
  std::size_t digits = 0;
  int value = 0;
  while (digits < text.size() && digits < most && isDigit(text[digits]))
    value = 10 * value + (text[digits++] - '0');
  if (digits < least || (digits < text.size() && isDigit(text[digits]))) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

double daysFrom2000(std::chrono::sys_days day) {
  return static_cast<double>((day - std::chrono::sys_days(std::chrono::year(2000) / 1 / 1)).count());
}

/// A month's number from 1 by its English name, or the first three letters of it.
std::optional<int> monthNamed(std::string_view text) {
  static constexpr std::array<std::string_view, 12> kMonths{"january",   "february", "march",    "april",
                                                            "may",       "june",     "july",     "august",
                                                            "september", "october",  "november", "december"};
  std::string name(text);
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (name == "sept") return 9;
  const auto found = std::ranges::find_if(
      kMonths, [&](auto month) { return name == month || (name.size() == 3 && month.starts_with(name)); });
  return found == kMonths.end() ? std::nullopt : std::optional<int>(found - kMonths.begin() + 1);
}

/// The first day of a quarter, month or week, as in "2011 Q3", "2011 Jan", "2011-01" or "2011-W05" (ISO
/// 8601).
std::optional<double> periodIn(std::string_view text) {
  const auto year = text.size() < 4 || !std::ranges::all_of(text.substr(0, 4), isDigit)
                        ? std::nullopt
                        : std::optional((text[0] - '0') * 1000 + (text[1] - '0') * 100 +
                                        (text[2] - '0') * 10 + (text[3] - '0'));
  if (!year) return std::nullopt;
  text.remove_prefix(4);
  const bool apart = take(text, ' ') || take(text, '-') || take(text, '/');
  const bool quarter = take(text, 'Q'), week = !quarter && take(text, 'W');
  const auto number = quarter || week || apart ? takeNumber(text, quarter ? 1 : 2, 2) : std::nullopt;
  const auto month = number ? std::nullopt : apart ? monthNamed(text) : std::nullopt;
  if (!month && (!number || !text.empty() || *number < 1)) return std::nullopt;
  if (week) {  // week 1 has 4 January in it, and a week begins on Monday
    if (*number > 53) return std::nullopt;
    const std::chrono::sys_days fourth = std::chrono::year(*year) / 1 / 4;
    return daysFrom2000(fourth - (std::chrono::weekday(fourth) - std::chrono::Monday)) + 7 * (*number - 1);
  }
  const int first = month ? *month : quarter ? 3 * *number - 2 : *number;
  if (first > 12) return std::nullopt;
  return daysFrom2000(std::chrono::year(*year) / first / 1);
}

/// Takes a year of four digits or, if `two` may be enough, of two: 69 to 99 are 1969 to 1999, and 00 to 40
/// are 2000 to 2040. The others may be of either century.
std::optional<int> takeYear(std::string_view& text, bool two) {
  if (const auto year = takeNumber(text, 4, 4)) return year;
  const auto year = two ? takeNumber(text, 2, 2) : std::nullopt;
  if (!year || (*year > 40 && *year < 69)) return std::nullopt;
  return *year + (*year < 69 ? 2000 : 1900);
}

/// The day of a calendar, if it has it.
std::optional<double> dayOf(int year, int month, int day) {
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  return date.ok() ? std::optional(daysFrom2000(date)) : std::nullopt;
}

/// Takes letters or digits, after what separates the parts of a date.
std::string_view takePart(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" -/.,"), text.size()));
  const auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool digits = !text.empty() && isDigit(text.front());
  const auto end = std::ranges::find_if_not(text, [&](char c) { return digits ? isDigit(c) : isLetter(c); });
  const auto part = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(part.size());
  return part;
}

/// Takes a date with the name of its month: "23-Mar-2016", "March 24, 2016" or "2016 Mar 24".
std::optional<double> takeNamedDate(std::string_view& text) {
  std::array<std::string_view, 3> parts{};
  for (auto& part : parts) part = takePart(text);
  const bool monthFirst = monthNamed(parts[0]).has_value(), yearFirst = !monthFirst && parts[0].size() == 4;
  const auto month = monthNamed(parts[monthFirst ? 0 : 1]);
  auto days = parts[monthFirst ? 1 : yearFirst ? 2 : 0], years = parts[yearFirst ? 0 : 2];
  const auto day = takeNumber(days, 1, 2), year = takeYear(years, !yearFirst);
  if (!month || !day || !year || !days.empty() || !years.empty()) return std::nullopt;
  return dayOf(*year, *month, *day);
}

std::optional<double> takeDate(std::string_view& text, DateOrder order) {
  static constexpr std::array<std::array<int, 3>, 3> kPlaces{{{0, 1, 2}, {2, 1, 0}, {2, 0, 1}}};  // y, m, d
  const auto& place = kPlaces[static_cast<std::size_t>(order)];
  std::array<int, 3> parts{};
  char separator = 0;
  const auto whole = text;
  for (int i = 0; i < 3; ++i) {
    if (i == 1) {
      separator = text.empty() ? '\0' : text.front();
      if (separator != '-' && separator != '/' && separator != '.') return std::nullopt;
    }
    if (i > 0 && !take(text, separator)) return std::nullopt;
    // "23-03-19" may begin with the year, "23/3/19" and "23.03.19" hardly ever do; "2.4.10" is a version.
    const bool two = i == 2 && (separator == '/' || (separator == '.' && whole.size() - text.size() == 6));
    const auto part = i == place[0] ? takeYear(text, two) : takeNumber(text, 1, 2);
    if (!part) return std::nullopt;
    parts[static_cast<std::size_t>(i)] = *part;
  }
  const auto at = [&](int i) { return parts[static_cast<std::size_t>(place[static_cast<std::size_t>(i)])]; };
  return dayOf(at(0), at(1), at(2));
}

/// Takes "12:30", "12:30:05" or "12:30:05.25", as a fraction of a day.
std::optional<double> takeTime(std::string_view& text) {
  const auto hours = takeNumber(text, 1, 2);
  if (!hours || !take(text, ':')) return std::nullopt;
  const auto minutes = takeNumber(text, 2, 2);
  if (!minutes) return std::nullopt;
  double seconds = 0;
  if (take(text, ':')) {
    const auto whole = takeNumber(text, 2, 2);
    if (!whole) return std::nullopt;
    seconds = *whole;
    if (take(text, '.')) {
      double unit = 0.1;
      for (; !text.empty() && isDigit(text.front()); text.remove_prefix(1), unit /= 10)
        seconds += unit * (text.front() - '0');
    }
  }
  if (*hours > 24 || *minutes > 59 || seconds > 60.999) return std::nullopt;
  return (*hours + (*minutes + seconds / 60) / 60) / 24;
}

/// Takes "Z", "+02:00" or "-0530", as days; 0 without one.
std::optional<double> takeZone(std::string_view& text) {
  if (text.empty() || take(text, 'Z')) return 0;
  const double sign = text.front() == '-' ? -1 : 1;
  if (!take(text, '+') && !take(text, '-')) return std::nullopt;
  std::string digits;
  for (const char c : text)
    if (c != ':') digits += c;
  std::string_view rest = digits;
  const auto number = takeNumber(rest, 4, 4);
  if (!number || !rest.empty()) return std::nullopt;
  text = {};
  return sign * (*number / 100 + *number % 100 / 60.0) / 24;
}

/// Without the commas between groups of three digits before the decimal point; "" if a comma stands
/// elsewhere.
std::string withoutThousands(std::string_view number) {
  std::string plain(number);
  std::erase(plain, ',');
  auto whole = number.substr(0, number.find_first_of(".eE"));
  if (plain.size() == number.size()) return plain;
  if (number.substr(whole.size()).find(',') != number.npos) return {};
  if (whole.starts_with('-') || whole.starts_with('+')) whole.remove_prefix(1);
  if (whole.starts_with('0')) return {};  // as in "0,125"
  for (auto comma = whole.find(','); comma != whole.npos; comma = whole.find(',')) {
    if (comma < 1 || comma > 3) return {};
    whole.remove_prefix(comma + 1);
    if (whole.size() < 3 || whole.substr(0, 3).find(',') != whole.npos ||
        (whole.size() > 3 && whole[3] != ','))
      return {};
  }
  return plain;
}

/// A decimal number of any size: infinity if it is too large for a double.
std::optional<double> decimalIn(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    return text.find("e-") != text.npos || text.find("E-") != text.npos ? 0 : HUGE_VAL;
  return error == std::errc() && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// As above, also with the column's unit, and with commas between thousands if it has them.
std::optional<double> decimalIn(std::string_view cell, const NumberText& text) {
  cell = trimmed(cell);
  bool negative = false;
  if (!text.before.empty() && cell.find(text.before) <= 1) {  // "$5" or "-$5"
    negative = cell.starts_with('-');
    if (!negative && cell.find(text.before) == 1 && !cell.starts_with('+')) return std::nullopt;
    cell.remove_prefix(cell.find(text.before) + text.before.size());
  }
  if (!text.after.empty() && cell.ends_with(text.after)) cell.remove_suffix(text.after.size());
  const auto value = decimalIn(text.thousands ? withoutThousands(trimmed(cell)) : std::string(trimmed(cell)));
  return value && negative ? std::optional(-*value) : value;
}

/// The number if it fits float32.
std::optional<double> fitting(std::optional<double> number) {
  return number && std::isfinite(static_cast<float>(*number)) ? number : std::nullopt;
}

}  // namespace

std::string_view trimmed(std::string_view cell) {
  while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t')) cell.remove_prefix(1);
  while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t')) cell.remove_suffix(1);
  return cell;
}

bool isMissing(std::string_view cell) {
  static constexpr std::array<std::string_view, 11> kWords{"",     "?",   "NA",  "N/A",  "n/a", "#N/A",
                                                           "<NA>", "NaN", "nan", "NULL", "null"};
  return std::ranges::find(kWords, cell) != kWords.end();
}

bool isMissingNumber(std::string_view cell) {
  return isMissing(cell) || cell == "-" || cell == "." || cell == "None" || cell == "none";
}

std::optional<double> numberIn(std::string_view cell) {
  return fitting(decimalIn(cell));
}

std::optional<double> numberIn(std::string_view cell, const NumberText& text) {
  return fitting(decimalIn(cell, text));
}

bool exceedsFloat(std::string_view cell, const NumberText& text) {
  return decimalIn(cell, text).has_value() && !numberIn(cell, text);
}

std::string_view numberWanted(std::string_view cell, const NumberText& text) {
  return exceedsFloat(cell, text) ? "between -3.4e38 and 3.4e38, the range of float32" : "a finite number";
}

bool hasDecimalComma(std::string_view cell) {
  cell = trimmed(cell);
  const auto comma = cell.find(',');
  if (comma == cell.npos || cell.find(',', comma + 1) != cell.npos || comma + 1 == cell.size()) return false;
  std::string text(cell);
  text[comma] = '.';
  return numberIn(text).has_value() && text.find('.') == comma;
}

bool namesDay(std::string_view cell) {
  return !periodIn(cell).has_value();
}

std::optional<double> daysIn(std::string_view cell, DateOrder order) {
  if (order == DateOrder::YearMonthDay)
    if (const auto period = periodIn(cell)) return period;
  auto rest = cell;
  auto days = takeDate(rest, DateOrder::YearMonthDay);
  if (!days && order != DateOrder::YearMonthDay) days = takeDate(rest = cell, order);
  if (!days) days = takeNamedDate(rest = cell);
  cell = rest;
  if (!days || cell.empty()) return days;
  if (!take(cell, 'T') && !take(cell, ' ')) return std::nullopt;
  const auto time = takeTime(cell);
  if (!time) return std::nullopt;
  const auto zone = takeZone(cell);
  return zone && cell.empty() ? std::optional(*days + *time - *zone) : std::nullopt;
}

char separatorOfDate(std::string_view cell) {
  using enum DateOrder;
  const auto place = std::min(cell.find_first_of("-/."), cell.size());
  if (place == cell.size() || place > 2 || daysIn(cell, YearMonthDay)) return 0;
  return daysIn(cell, MonthDayYear) || daysIn(cell, DayMonthYear) ? cell[place] : '\0';
}

}  // namespace muster
