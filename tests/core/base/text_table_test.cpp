#include "muster/core/base/text_table.h"

#include "muster/core/base/byte_text.h"
#include "muster/core/base/number_text.h"
#include "tests/support/test.h"

namespace muster {
namespace {

TEST_CASE("fields of a line of CSV are read as they are written, and lists show commas in names") {
  using Fields = std::vector<std::string>;
  CHECK(csvFields("a, b,c") == Fields{"a", " b", "c"});
  CHECK(csvFields("\"a, b\",c,") == Fields{"a, b", "c", ""});
  CHECK(csvFields("") == Fields{""});
  CHECK(csvFields("c, \"a, b\", \"\"\"d\"\"\"") == Fields{"c", "a, b", "\"d\""});
  const Fields all{"plain", "with, comma", "with \"quotes\""};
  std::string line;
  for (const auto& field : all) line += (line.empty() ? "" : ",") + csvField(field);
  CHECK(csvFields(line) == all);
  CHECK(csvList(Fields{"a", "b, c"}) == "a, \"b, c\"");
  CHECK(csvFields(csvList(Fields{"a", "b, c"})) == Fields{"a", "b, c"});
}

TEST_CASE("numbers are formatted to be read by people") {
  CHECK(groupedNumber(5) == "5");
  CHECK(groupedNumber(999) == "999");
  CHECK(groupedNumber(1000) == "1,000");
  CHECK(groupedNumber(1234567) == "1,234,567");
  CHECK(groupedNumber(-123456) == "-123,456");
  CHECK(byteText(1724320) == "1.72 MB");
  CHECK(byteText(12) == "12 B");
  CHECK(secondsDigits(0.4312) == "0.431");
  CHECK(secondsDigits(43.12) == "43.1");
  CHECK(secondsDigits(4310.4) == "4310");
}

TEST_CASE("a number is a whole text, as C and Python write it") {
  CHECK(parsedNumber(".5") == 0.5);
  CHECK(parsedNumber("-1e-2") == -0.01);
  for (const char* const text : {"", "1 ", " 1", "0.1x", "a"}) CHECK_FALSE(parsedNumber(text));
  for (const char* const text : {"nan", "inf", "1e400"}) CHECK(std::isnan(parsedNumber(text).value()));
}

TEST_CASE("the columns of a table line up, whatever its characters") {
  CHECK(textTable({{"arm", "accuracy", "s"}, {"one", "1 ± 2", "10"}, {"three", "-", "5 *"}}) ==
        "arm    accuracy    s\n"
        "one       1 ± 2   10\n"
        "three         -  5 *\n");
  CHECK(textTable({}).empty());
  CHECK(markdownTable({{"arm", "s"}, {"one", "1 ± 2"}}) == "| arm | s |\n|---|---|\n| one | 1 ± 2 |\n");
}

TEST_CASE("a table as CSV quotes what holds a comma, a quote or a line's end") {
  CHECK(csvTable({{"arm", "s"}, {"a, \"b\"", "1"}, {"two\nlines", "c;d"}}) ==
        "arm,s\n\"a, \"\"b\"\"\",1\n\"two\nlines\",c;d\n");
  CHECK(csvField("carriage\rreturn") == "\"carriage\rreturn\"");
}

TEST_CASE("lines are broken between words") {
  CHECK(wrappedText("one two three four", 9) == "one two\n  three\n  four\n");
  CHECK(wrappedText("± ± ±", 5) == "± ± ±\n");
  CHECK(wrappedText("incomprehensible it is", 6) == "incomprehensible\n  it\n  is\n");
}

TEST_CASE("a wrapped text keeps what is in quotes or brackets whole, so that it can be copied") {
  CHECK(wrappedText("set it: --set data={\"type\": [1, 2]} here", 14) ==
        "set it: --set\n  data={\"type\": [1, 2]}\n  here\n");
  CHECK(wrappedText("the \"my file.csv\" is gone", 8) == "the\n  \"my file.csv\"\n  is\n  gone\n");
  CHECK(wrappedText("('a b') the worker's own a's", 8) == "('a b')\n  the\n  worker's\n  own\n  a's\n");
  CHECK(wrappedText("an open \" and { here", 8) == "an open\n  \" and\n  { here\n");
}

}  // namespace
}  // namespace muster
