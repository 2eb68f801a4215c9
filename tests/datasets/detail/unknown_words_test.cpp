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
  CHECK(looksLike("\u00c4", "\u00e4"));
  CHECK_FALSE(looksLike("\u0104", "\u0105"));  // beyond Latin-1, capitals count
}

TEST_CASE("a letter with its mark is known in either form of Unicode") {
  for (const auto& [one, other] :
       {std::pair("M\u00fcnchen", "Mu\u0308nchen"),
        {"\u00c5se \u00c7 \u00d1 \u00dd", "A\u030ase C\u0327 N\u0303 Y\u0301"},
        {"\u00e0\u00e9\u00ee\u00f5\u00ff", "a\u0300e\u0301i\u0302o\u0303y\u0308"}}) {
    CHECK(looksLike(one, other));
    CHECK(withTwin(other, {one}) ==
          fmt::format("\"{}\" (known is \"{}\", in another Unicode form)", other, one));
  }
  for (const auto& [one, other] :
       {std::pair("Munchen", "Mu\u0308nchen"), {"\u00d8", "O"}, {"\u00f7", "\u00d7"}, {"u\u0301", "u\u0308"}})
    CHECK_FALSE(looksLike(one, other));
  CHECK(withTwin("\u00e6\u00df", {"b"}) == "\"\u00e6\u00df\"");
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

TEST_CASE("a column without any value is warned of, but not one gap of a column with gaps") {
  const InputDescription description{
      .columns = {{.name = "income", .filling = 50.5},
                  {.name = "town", .kind = ColumnKind::Words, .missing = true, .words = {"Bonn"}},
                  {.name = "when", .kind = ColumnKind::Date, .filling = 31, .missing = true}}};
  const auto warnings = [&](std::string_view rows, std::span<const std::int64_t> of = {}) {
    const test::LogLines log;
    const auto table = parseTable(fmt::format("town,income,when\n{}", rows), {}, "table.csv");
    of.empty() ? logUnknownWords(description, table) : logUnknownWords(description, table, of);
    return log.all();
  };
  using Lines = std::vector<std::string>;
  const std::string takes = "; the median of the training rows, ",
                    income =
                        "warning: column income: all 2 rows have no value, and no training row was without "
                        "one" +
                        takes + "50.5, takes its place";
  CHECK(warnings("Bonn,,2020-01-01\nBonn,,2020-01-01\n") == Lines{income});
  CHECK(warnings(",NA,\nNA,?,-\n") ==
        Lines{income, "warning: column town: all 2 rows have no value; it counts as no word",
              "warning: column when: all 2 rows have no value" + takes + "2000-02-01, takes its place"});
  const std::array<std::int64_t, 2> two{0, 1};
  CHECK(warnings("Bonn,,\nBonn,NA,2020-01-01\nBonn,7,\n", two) == Lines{income});
  CHECK(warnings(",,\n") ==
        Lines{"warning: column income: the row has no value, and no training row was without "
              "one" +
              takes + "50.5, takes its place"});
}
