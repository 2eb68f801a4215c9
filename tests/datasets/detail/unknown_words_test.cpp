#include "muster/datasets/detail/unknown_words.h"

#include "tests/support/log_lines.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::detail;

TEST_CASE("words look alike that differ in capitals, blanks and hyphens alone") {
  CHECK(looksLike("Dark Red", "dark_red"));
  CHECK(looksLike("dark-red", "darkred"));
  CHECK_FALSE(looksLike("red", "reed"));
  CHECK(looksLike("T-1", "t1"));
  for (const auto& [one, other] :
       {std::pair("-1", "1"), {"A", "A-"}, {"1-9", "19"}, {"1 2", "12"}, {"_a", "a"}})
    CHECK_FALSE(looksLike(one, other));
  CHECK_FALSE(looksLike("\u00c4", "\u00e4"));  // beyond ASCII, capitals count
}

TEST_CASE("words without a feature are logged, with the known ones that look like them") {
  const Table table = parseTable("colour,size\nred,1\nDark Red,x\nblue,3\nblue,y\n", {}, "table.csv");
  const InputDescription description{
      .columns = {{.name = "colour", .kind = ColumnKind::Words, .words = {"dark_red", "red"}},
                  {.name = "size"},
                  {.name = "no such column", .kind = ColumnKind::Words}}};
  const test::LogLines log;
  logUnknownWords(description, table);
  const auto lines = log.all();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        "column colour: 3 rows have words for which the model has no feature: \"Dark Red\" (known is "
        "\"dark_red\"), \"blue\"");
  CHECK(
      lines[1] ==
      "warning: column size: 2 rows have words where it has numbers, as if the number were missing: \"x\" in "
      "line 3, \"y\" in line 5");
  logUnknownWords(description, table, std::array<std::int64_t, 2>{0, 2});
  REQUIRE(log.all().size() == 3);
  CHECK(log.all()[2] == "column colour: 1 row has a word for which the model has no feature: \"blue\"");
}

TEST_CASE("rows without the unit that the model learned with are warned of, if none has it") {
  const InputDescription description{.columns = {{.name = "area", .text = {.after = "m2"}}}};
  const test::LogLines log;
  logUnknownWords(description, parseTable("area,x\n26,1\n27 m2,1\n", {}, "table.csv"));
  CHECK(log.all().empty());
  logUnknownWords(description, parseTable("area,x\n?,1\n26,1\n27,1\n", {}, "table.csv"));
  CHECK(log.all() ==
        std::vector<std::string>{"warning: column area: no row has the unit \"m2\" that the model "
                                 "learned with; \"26\" is read as if it had it"});
}
