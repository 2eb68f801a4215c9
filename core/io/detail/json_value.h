#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

namespace muster::detail {

/// Reads a JSON text. Numbers with a fraction or an exponent become the nearest double; a key that stands
/// twice in an object is refused, as nobody can say which one was meant.
///
/// @throws InvalidArgument naming line, column and problem.
boost::json::value parseJson(std::string_view text);

/// Writes a value so that people can read it: two spaces a level; what fits on one line, and any array of
/// plain values, stands on one line. `parseJson` gives the same value back, every double exactly; infinity
/// and NaN, which JSON has no word for, become null. Ends with a newline.
std::string printJson(const boost::json::value& value);

/// The same on one line, without a newline.
std::string printJsonLine(const boost::json::value& value);

/// A value in a few words, for errors: `the string "abc"`, `an object`.
std::string describeJson(const boost::json::value& value);

/// A string in quotes, escaped.
std::string quoteJson(std::string_view text);

}  // namespace muster::detail
