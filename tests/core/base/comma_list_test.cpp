#include "muster/core/base/comma_list.h"

#include "tests/support/test.h"

using namespace muster;

TEST_CASE("a list has a part before, between and after its commas") {
  using Parts = std::vector<std::string_view>;
  CHECK(commaList("a,b c,d") == Parts{"a", "b c", "d"});
  CHECK(commaList("one") == Parts{"one"});
  CHECK(commaList("") == Parts{""});
  CHECK(commaList(",a,") == Parts{"", "a", ""});
}
