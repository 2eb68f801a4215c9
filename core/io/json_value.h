#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

// Programs that include this use Boost.JSON; JsonReader and JsonWriter (json_fields.h) do without.

namespace muster {

/// Reads a JSON text. Numbers with a fraction or an exponent become the nearest double; a repeated key in an
/// object is refused.
///
/// @throws InvalidArgument naming line, column and problem.
boost::json::value parseJson(std::string_view text);

/// Writes a value for people: two spaces a level; values that fit on one line, and any array of plain values,
/// are on one line. `parseJson` returns the same value, every double exactly; infinity and NaN, which JSON
/// lacks, become null. Ends with a newline.
std::string printJson(const boost::json::value& value);

/// As above, on one line without a newline.
std::string printJsonLine(const boost::json::value& value);

/// A value in a few words, for errors: `the string "abc"`, `an object`.
std::string describeJson(const boost::json::value& value);

/// A string in quotes, escaped.
std::string quoteJson(std::string_view text);

}  // namespace muster
