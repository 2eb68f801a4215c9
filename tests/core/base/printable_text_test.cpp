#include "muster/core/base/printable_text.h"

#include "tests/support/test.h"

namespace muster {

TEST_CASE("text from a file cannot send commands to the terminal") {
  CHECK(printableText("there is no \"d\xC3\xA9j\xC3\xA0\"") == "there is no \"d\xC3\xA9j\xC3\xA0\"");
  CHECK(printableText("\x1B[2Jtwo\nlines\x7F") == "\\x1b[2Jtwo\\x0alines\\x7f");
  CHECK(printableText(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printableText("\xC2\x9B"
                      "2J") == "\\xc2\\x9b2J");  // a control character of two bytes
  CHECK(printableText("\xFF\xE2\x82") == "\\xff\\xe2\\x82");
  CHECK(printableText("") == "");
}

TEST_CASE("a text of several lines keeps its lines and its length") {
  CHECK(printableLines("one\n\ttwo\x1B[2J\r\n") == "one\n\ttwo\\x1b[2J\\x0d\n");
  CHECK(printableLines(std::string(100'000, 'n')) == std::string(100'000, 'n'));
}

TEST_CASE("a long quotation is cut at its end") {
  const std::string text = printableText(std::string(100'000, 'n'));
  CHECK(text.size() < 4100);
  CHECK(text.ends_with("n... (96000 bytes more)"));
}

}  // namespace muster
