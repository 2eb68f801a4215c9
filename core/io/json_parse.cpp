#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/io/json_value.h"

namespace muster {
namespace {

namespace json = boost::json;

/// Builds a value from the parser's events. It reads doubles from their text: the parser's own doubles may be
/// wrong in the last digits (Boost 1.81).
struct Builder {
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);
  using Error = json::error_code;
  using Text = json::string_view;

  std::vector<json::value> open;  // unfinished containers, outermost first
  std::vector<std::string> keys;  // [open object] key of the next value
  std::string text;               // the part of a string, key or number read so far
  json::value document;
  std::string problem;  // an error found by this builder

  bool refuse(std::string what, Error& error) {
    problem = std::move(what);
    error = json::error::syntax;
    return false;
  }

  std::string take(Text last) {
    text.append(last.data(), last.size());
    return std::exchange(text, {});
  }

  bool add(json::value value, Error& error) {
    if (open.empty()) {
      document = std::move(value);
    } else if (auto* array = open.back().if_array()) {
      array->push_back(std::move(value));
    } else {
      const std::string key = std::move(keys.back());
      keys.pop_back();
      if (!open.back().get_object().emplace(key, std::move(value)).second)
        return refuse(fmt::format("the key {} is given twice", quoteJson(key)), error);
    }
    return true;
  }

  bool closeContainer(Error& error) {
    json::value finished = std::move(open.back());
    open.pop_back();
    return add(std::move(finished), error);
  }

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error&) { return open.emplace_back(json::object()), true; }
  bool on_object_end(std::size_t, Error& error) { return closeContainer(error); }
  bool on_array_begin(Error&) { return open.emplace_back(json::array()), true; }
  bool on_array_end(std::size_t, Error& error) { return closeContainer(error); }
  bool on_key_part(Text part, std::size_t, Error&) { return text.append(part.data(), part.size()), true; }
  bool on_key(Text last, std::size_t, Error&) { return keys.push_back(take(last)), true; }
  bool on_string_part(Text part, std::size_t, Error&) { return text.append(part.data(), part.size()), true; }
  bool on_string(Text last, std::size_t, Error& error) { return add(json::value(take(last)), error); }
  bool on_number_part(Text part, Error&) { return text.append(part.data(), part.size()), true; }
  bool on_int64(std::int64_t number, Text, Error& error) { return text.clear(), add(number, error); }
  bool on_uint64(std::uint64_t number, Text, Error& error) { return text.clear(), add(number, error); }
  bool on_double(double, Text last, Error& error) {
    const std::string digits = take(last);
    double number = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (status != std::errc() || end != digits.data() + digits.size())
      return refuse(fmt::format("{} does not fit a double", digits), error);
    return add(number, error);
  }
  bool on_bool(bool value, Error& error) { return add(value, error); }
  bool on_null(Error& error) { return add(nullptr, error); }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }
};

[[noreturn]] void refuseText(std::string_view text, std::size_t position, const std::string& problem) {
  const std::string_view before = text.substr(0, position);
  const auto line = std::ranges::count(before, '\n') + 1;
  const auto column = position - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  throw InvalidArgument(fmt::format("not valid JSON at line {}, column {}: {}", line, column, problem));
}

}  // namespace

json::value parseJson(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  require(!text.starts_with("\xFF\xFE") && !text.starts_with("\xFE\xFF"),
          "the text is UTF-16, and JSON is UTF-8: save it with the encoding UTF-8");
  json::basic_parser<Builder> parser{json::parse_options()};
  json::error_code error;
  const std::size_t end = parser.write_some(false, text.data(), text.size(), error);
  Builder& builder = parser.handler();
  if (error) refuseText(text, end, builder.problem.empty() ? error.message() : builder.problem);
  if (end != text.size()) refuseText(text, end, "there is more text after the value");
  return std::move(builder.document);
}

}  // namespace muster
