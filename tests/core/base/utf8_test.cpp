#include "muster/core/base/utf8.h"

#include "tests/support/test.h"

namespace muster {

TEST_CASE("valid and invalid UTF-8 are distinguished") {
  for (const char* text : {"", "plain\n", "größe", "日本語", "😀", "\x7F\xC2\x80", "\xF4\x8F\xBF\xBF"}) {
    CAPTURE(text);
    CHECK(isUtf8(text));
  }
  for (const char* text : {"gr\xF6\xDF", "\x80", "a\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF", "\xED\xA0\x80",
                           "\xE2\x82", "\xF0\x9F\x98", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    CAPTURE(text);
    CHECK_FALSE(isUtf8(text));
  }
}

TEST_CASE("for an incomplete character the number of its valid bytes is returned") {
  const Utf8Character cut = readUtf8("\xE2\x82");
  CHECK_FALSE(cut.valid);
  CHECK(cut.announced == 3);
  CHECK(cut.bytes == 2);
  CHECK(readUtf8("\xE9 x").bytes == 1);
  CHECK(readUtf8("\xF6").announced == 0);
  const Utf8Character surrogate = readUtf8("\xED\xA0\x80");
  CHECK_FALSE(surrogate.valid);
  CHECK(surrogate.bytes == surrogate.announced);
  const Utf8Character euro = readUtf8("€uro");
  CHECK(euro.valid);
  CHECK(euro.bytes == 3);
  CHECK(euro.character == U'€');
}

}  // namespace muster
