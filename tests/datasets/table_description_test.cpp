#include "muster/datasets/table_description.h"

#include <fmt/ranges.h>

#include "muster/datasets/table_examples.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

using Names = std::vector<std::string>;
using Floats = std::vector<float>;
using Rows = std::vector<std::int64_t>;

Table tableOf(std::string_view text) {
  return parseTable(text, {}, "f.csv");
}

InputDescription described(const Table& read, const TableOptions& options = {}) {
  return describeTable(read, options, allRows(read));
}

/// The rows of a column beside a label: "a" and "b" in turn.
Table column(const Names& cells) {
  std::string text = "x,other,label\n";
  for (std::size_t i = 0; i < cells.size(); ++i)
    text += fmt::format("\"{}\",{},{}\n", cells[i], i % 3 == 0 ? 7.5 : 2.5, i % 2 == 0 ? "a" : "b");
  return tableOf(text);
}

ColumnDescription columnOf(const Names& cells) {
  return described(column(cells)).columns.front();
}

/// What a column is read as: its kind, and all that is not as in most columns of this kind.
std::string textOf(const ColumnDescription& read) {
  std::string text(nameOf(read.kind));
  const auto add = [&](bool has, const auto& what) { text += has ? fmt::format(" {}", what) : ""; };
  add(read.order != DateOrder::YearMonthDay, nameOf(read.order));
  add(read.filling != 0, read.filling);
  add(read.missing, "missing");
  add(read.wordsAreMissing, "wordsAreMissing");
  add(!read.text.before.empty() || !read.text.after.empty(), read.text.before + "N" + read.text.after);
  add(read.text.thousands, "thousands");
  add(read.logScale != 0, fmt::format("log {}", read.logScale));
  add(!read.quantiles.empty(), fmt::format("{} quantiles", read.quantiles.size()));
  add(!read.words.empty(), fmt::format("{}", fmt::join(read.words, "|")));
  add(read.others, "others");
  add(read.year, "year");
  add(read.week, "week");
  add(read.day, "day");
  return text;
}

/// `count` equal cells before others.
Names mostly(const char* cell, std::size_t count, const Names& others) {
  Names cells(count, cell);
  cells.insert(cells.end(), others.begin(), others.end());
  return cells;
}

/// Three cells of each.
Names thrice(const char* one, const char* other) {
  return {one, other, one, other, one, other};
}

/// 40 whole numbers.
Names counter(int first, int step) {
  Names cells;
  for (int i = 0; i < 40; ++i) cells.push_back(fmt::format("{}", first + step * i));
  return cells;
}

Floats features(const InputDescription& description, const Table& read) {
  const Tensor all = tableFeatures(description, read, allRows(read));
  return {all.span<float>().begin(), all.span<float>().end()};
}
Floats features(const ColumnDescription& only, std::string_view text) {
  return features(InputDescription{.columns = {only}}, tableOf(text));
}

std::string problem(const Table& read, const TableOptions& options = {}) {
  return test::thrown<FileError>([&] { described(read, options); });
}
std::string problem(std::string_view text, const TableOptions& options = {}) {
  return problem(tableOf(text), options);
}

/// Checks what a column is read as, what is logged of it, and perhaps the first feature of each row.
void reads(const Names& cells, std::string_view text, const Names& lines = {}, const Floats& numbers = {}) {
  CAPTURE(cells.front());
  const test::LogLines log;
  const auto read = described(column(cells));
  CHECK(textOf(read.columns.front()) == text);
  CHECK(log.all() == lines);
  CHECK(InputDescription::fromJson(read.toJson()) == read);
  const auto values = features(read, column(cells));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    CHECK(values[i * static_cast<std::size_t>(read.features())] == numbers[i]);
}

}  // namespace

TEST_CASE("a column is read as numbers, words or dates; what is unsure is told") {
  const std::string other = "warning: column x: 1 value is no ",
                    missing = " in line 21: it counts as missing",
                    order = "warning: column x: its dates may have the day or the month first, and ",
                    monthFirst = "the month first; data.dateOrder=dayMonthYear reads the day first",
                    short2 = "column x: its dates with years of two digits are read as ";
  const auto number = [](const char* cell, const char* value) {
    return Names{fmt::format("column x: \"{}\" is read as the number {}", cell, value)};
  };
  auto swapped = counter(1000, 1);
  std::swap(swapped[3], swapped[7]);
  Names names;
  for (int i = 0; i < 20; ++i) names.push_back(fmt::format("Name {}", i));
  names.insert(names.end(), {"Name 1", "Name 2", "Name 1", "Name 2"});
  // A gap is the median of the training rows, and has a feature if training had gaps; marks are gaps.
  reads({"1.5", "", "10", "NA", "3"}, "number 3 missing", {}, {1.5f, 3, 10, 3, 3});
  reads({"1.5", "2", "10.5", "4"}, "number 3");
  reads({"1.5", "-", "10", ".", "3"}, "number 3 missing");
  reads({"2000-01-03", "-", "2000-01-03", "2000-01-05", "none"}, "date 2 missing");
  reads({"-", "+", "-", "+", "-"}, "words +|-");
  // A few words among numbers or dates count as missing.
  reads(mostly("4.5", 18, {"2.5", "<1"}), "number 4.5 missing wordsAreMissing",
        {other + "number, as \"<1\"" + missing});
  reads(mostly("4.5", 16, {"many", "many", "2.5", "<1"}), "words 4.5 others");
  reads(mostly("2000-01-03", 18, {"2000-01-05", "soon"}), "date 2 missing",
        {other + "date, as \"soon\"" + missing});
  reads(mostly("5 kg", 18, {"7 kg", "heavy"}), "number 5 missing wordsAreMissing Nkg",
        {number("5 kg", "5")[0], other + "number, as \"heavy\"" + missing});
  reads(mostly("450", 18, {"250.5", "1,450"}), "number 450 thousands", number("1,450", "1450"));
  reads(mostly("2.5", 19, {"-1e308"}), "number 2.5 missing wordsAreMissing",
        {other + "number within float32's 3.4e38, as \"-1e308\"" + missing});
  // Units, and commas between thousands.
  reads({"$45", "-$2.5", "7", "$ 8"}, "number 7.5 $N", number("$ 8", "8"), {45, -2.5f, 7, 8});
  reads({"0.3%", "12 %", "-1.5%"}, "number 0.3 N%", number("-1.5%", "-1.5"), {0.3f, 12, -1.5f});
  reads({"12 kg", "5 kg", "+3 kg"}, "number 5 Nkg", number("+3 kg", "3"), {12, 5, 3});
  reads({"50 m2", "7.5 m2"}, "number 28.75 Nm2", number("50 m2", "50"), {50, 7.5f});
  reads({"92,000", "1,250,000", "-3,500", "300"}, "number 46150 thousands", number("-3,500", "-3500"),
        {92000, 1250000, -3500, 300});
  reads({"$1,200.50", "$999"}, "number 1099.75 $N thousands", number("$1,200.50", "1200.5"), {1200.5f, 999});
  reads(thrice("5 kg", "5 g"), "words 5 g|5 kg",
        {"warning: column x: its numbers have several units, as \"5 g\" and \"5 kg\", so they are read as "
         "words"});
  reads(thrice("5a", "5b"), "words 5a|5b");
  reads(thrice("PC1", "PC2"), "words PC1|PC2");
  reads({"01008", "2001", "01008", "2001"}, "number 1504.5",
        {number("01008", "1008")[0] + "; if it is a code, letters before it make it a word"});
  reads(
      {"20210901", "20210930", "20211001"}, "number 20210930",
      {"column x: \"20210901\" is read as a number, as all its values; if they are dates, write 2021-09-01"});
  reads({"20210901", "20210931", "20211001"}, "number 20210931");
  // Numbers of many magnitudes, of more than five values, and such that do not count the rows.
  reads({"0", "-1", "2", "2", "5000.5"}, "number 2 log 2");  // the median of 1, 2, 2, 5000.5
  reads({"8", "1", "1", "1", "16", "2", "4", "32"}, "number 3 8 quantiles");
  reads({"1", "2", "3", "5", "8", "8"}, "number 4");
  reads({"1971", "1972", "1973", "1974"}, "number 1972.5");
  reads(counter(5000, 2), "number 5039 40 quantiles");
  reads(counter(1971, 1), "number 1990.5 40 quantiles");  // years
  reads(counter(20, 1), "number 39.5 40 quantiles");      // ages
  reads(counter(-20, 1), "number -0.5 40 quantiles");
  reads(swapped, "number 1019.5 40 quantiles");
  // Dates, whose parts have features if they vary.
  reads({"23-Mar-2016", "24-Apr-2016", "23-Mar-2016"}, "date 5926 week");
  reads({"March 24, 2016", "April 2, 2016", "April 3, 2016"}, "date 5936");
  reads({"2011 Jan", "2011 Feb", "2011 Jan"}, "date 4018");  // no units of 2011
  reads({"31/12/1999", "01/01/2000", "03/01/2000"}, "date dayMonthYear");
  reads({"2000-01-01 06:00", "2002-01-03 12:00", "2000-01-02 00:00"}, "date 1 year week day");
  reads({"3/19/23", "4/2/23", "3/19/23"}, "date monthDayYear 8478", {short2 + "2023-03-19 to 2023-04-02"});
  reads({"03.03.24", "28.02.24", "03.03.24"}, "date dayMonthYear 8828",
        {short2 + "2024-02-28 to 2024-03-03"});
  reads({"03.03.24", "05.04.24", "03.03.24"}, "date dayMonthYear 8828 week",
        {order + "\"05.04.24\" is read as 2024-04-05, the day first; data.dateOrder=monthDayYear reads the "
                 "month first"});
  reads({"3/4/2020", "5/4/2020", "3/4/2020"}, "date monthDayYear 7368 week",
        {order + "\"3/4/2020\" is read as 2020-03-04, " + monthFirst});
  // Those whose year is first are read beside others.
  reads({"3/19/2023", "2023-03-20", "3/21/2023", "2023-03-20"}, "date monthDayYear 8479", {},
        {8478, 8479, 8480, 8479});
  reads(mostly("2023-03-04", 19, {"20/3/2023"}), "date dayMonthYear 8463 week");
  reads(mostly("2023-03-04", 19, {"3/5/2023"}), "date monthDayYear 8463",
        {order + "\"3/5/2023\" is read as 2023-03-05, " + monthFirst});
  // Words; rare ones share a feature.
  reads({"red", "blue", "red", " blue", "red", "blue ", "green", "pink", ""},
        "words missing blue|red others");
  reads({"no", "no", "no", "yes"}, "words no|yes");
  reads(names, "words Name 1|Name 2 others");
  reads(
      thrice("14:05", "9:30"), "words 14:05|9:30",
      {"warning: column x: its times of the day, as \"9:30\", are read as words; write them with a date, or "
       "as numbers of minutes"});
  reads(
      thrice("23-03-19", "23-03-20"), "words 23-03-19|23-03-20",
      {"warning: column x: it is not said whether its dates begin with the year, as \"23-03-20\"; write the "
       "year with four digits; they are read as words"});
  const test::LogLines log;
  const Names slashes{"3/4/2020", "5/4/2020", "3/4/2020"};
  CHECK(textOf(described(column(slashes), {.dateOrder = DateOrder::DayMonthYear}).columns.front()) ==
        "date dayMonthYear 7398");
  CHECK(log.all().empty());
  CHECK(columnOf({"3/14/2020", "5-15-2020", "5.5.2020", "2020-03-04"}).separators == "-/");
  CHECK(columnOf({"2020-03-04", "2020-03-05", "3 Apr 2020"}).separators.empty());
  CHECK(described(column(slashes), {.dateOrder = DateOrder::DayMonthYear}).columns.front().separators ==
        "-./");
}

TEST_CASE("dates of new rows with a separator that the training did not have are refused, if unsure") {
  const auto refused = [](const ColumnDescription& learned, std::string_view rows) {
    return test::thrown<FileError>([&] { features(learned, fmt::format("when,y\n{}", rows)); });
  };
  ColumnDescription slashes{
      .name = "when", .kind = ColumnKind::Date, .order = DateOrder::MonthDayYear, .separators = "/"};
  ColumnDescription dots{
      .name = "when", .kind = ColumnKind::Date, .order = DateOrder::DayMonthYear, .separators = "."};
  const std::string end = " says which; write the year first, or data.dateOrder of a run file says it",
                    monthFirst =
                        "f.csv: line 3: column when: \"01.09.2021\" is 2021-01-09 with the month first, "
                        "as was learned",
                    dayFirst = ", and 2021-09-01 with the day first; no date with \".\"" + end;
  const std::string twoDots = "9/27/2021,1\n01.09.2021,1\n02.09.2021,1\n";
  CHECK(refused(slashes, twoDots) == monthFirst + " of dates with \"/\"" + dayFirst);
  CHECK(refused(dots, "04/03/2020,1\n") ==
        "f.csv: line 2: column when: \"04/03/2020\" is 2020-03-04 with the day first, as was learned "
        "of dates with \".\", and 2020-04-03 with the month first; no date with \"/\"" +
            end);
  CHECK(refused(slashes, "01/09/2021,1\n2021-09-01,1\n1 Sep 2021,1\n05.05.2021,1\n").empty());
  CHECK(refused(slashes, twoDots + "09.27.2021,1\n").empty());
  CHECK_CONTAINS(refused(slashes, twoDots + "27.09.2021,1\n"), "is \"27.09.2021\"");
  CHECK_CONTAINS(refused(dots, "12.31.2021,1\n"), "must be a date as 31.12.2020 (day, month, year), and is");
  // Models of earlier versions do not say which separators they learned with.
  slashes.separators = dots.separators = "";
  CHECK(refused(slashes, twoDots) == monthFirst + dayFirst);
  CHECK(refused(slashes, "01-09-2021,1\n").empty());
  const test::LogLines log;
  CHECK(refused(dots, "04/03/2020,1\n").empty());
  CHECK(log.all() ==
        Names{"warning: f.csv: line 2: column when: \"04/03/2020\" is 2020-03-04 with the day first, as "
              "was learned, and 2020-04-03 with the month first; no date with \"/\" says which; the order "
              "that was learned is taken"});
}

TEST_CASE("held-out rows of the training's table have its order of dates, with a warning") {
  const auto table = tableOf("when,y\n9/27/2021,1\n9/28/2021,2\n01.09.2021,1\n");
  InputDescription learned{
      .columns = {
          {.name = "when", .kind = ColumnKind::Date, .order = DateOrder::MonthDayYear, .separators = "/"}}};
  const test::LogLines log;
  addDateSeparators(learned, table, Rows{0, 1});
  CHECK(learned.columns.front().separators == "/");
  CHECK(log.all().empty());
  addDateSeparators(learned, table, Rows{2});
  CHECK(learned.columns.front().separators == "./");
  CHECK_CONTAINS(log.lineWith({"\"01.09.2021\" is 2021-01-09 with the month first"}), "line 4: column when");
  CHECK_NOTHROW(tableFeatures(learned, table, Rows{2}));
}

TEST_CASE("a table without names of columns has as many as the training's, or no label") {
  const auto bare = [](std::string_view rows) { return parseTable(rows, {.header = false}, "f.csv"); };
  const auto read = bare("1.5,2,a\n2.5,3,b\n0.5,4,a\n");
  const auto last = described(read), first = described(bare("a,2,1.5\nb,3,2.5\na,4,0.5\n"), {.label = "1"});
  CHECK(last.unnamedColumns == 3);
  CHECK(described(column({"1", "2"})).unnamedColumns == 0);
  CHECK(InputDescription::fromJson(last.toJson()) == last);
  const auto refused = [&](const InputDescription& description, std::string_view rows) {
    return test::thrown<FileError>([&] { features(description, bare(rows)); });
  };
  const std::string places =
      " without names, and the training's table had 3; they are known by their places, so a table must have "
      "all of them, in the same order";
  CHECK(refused(last, "7,1.5,2,a\n") ==
        "f.csv: has 4 columns" + places + "; the last one, the label, may be missing");
  CHECK(refused(first, "7,a,2,1.5\n") == "f.csv: has 4 columns" + places);
  CHECK(refused(first, "2,1.5\n") == "f.csv: has 2 columns" + places);
  CHECK(refused(last, "1.5,2\n").empty());
  auto old = last;
  old.unnamedColumns = 0;
  CHECK(refused(old, "7,1.5,2,a\n").empty());
}

TEST_CASE("columns that say nothing, or identify rows, are left out with a reason") {
  Names unclear, mixed, codes, names;
  for (int i = 1; i <= 12; ++i) {
    unclear.push_back(fmt::format("23-03-{:02}", i));
    mixed.push_back(i % 2 == 0 ? fmt::format("{}/20/2020", i) : fmt::format("20/{}/2020", i));
    codes.push_back(fmt::format("12:{}:7:{}", i, i));
    names.push_back(fmt::format("Name {}", i));
  }
  const std::string counts = "its whole numbers count the rows",
                    another = "nearly every row has another word";
  for (const auto& [cells, reason] :
       {std::pair<Names, std::string>{{"4", "4", "4"}, "every row has \"4\""},
        {{"", "NA", "?"}, "no row has a value"},
        {{"3", "1", "2", "4"}, counts},
        {counter(1000, 1), counts},
        {counter(5000, -1), counts},
        {{"a", "a", "b", "c", "b", "c"}, "no word is in 3 rows or more"},
        {names, another},
        {unclear,
         another + "; it is not said whether its dates begin with the year, as \"23-03-12\"; write the year "
                   "with four digits"},
        {mixed, another + "; some of its dates have the month first and some the day, as \"8/20/2020\" and "
                          "\"20/9/2020\"; write all in one order"},
        {codes, another + "; \"12:1:7:1\" is read neither as a number nor as a date"}})
    CHECK(described(column(cells)).omitted == std::vector<OmittedColumn>{{"x", reason}});
  CHECK(described(column(counter(1000, 1)), {.columns = {"x"}}).omitted.empty());
  CHECK(problem("id,y\n1,a\n2,b\n3,a\n") == "f.csv: has no column to learn from; id: " + counts);
  for (const auto& kept : {Rows{1, 2, 3, 4, 5, 6}, {20, 39, 25, 31}, {39, 3, 2, 0}})  // others are held out
    CHECK(describeTable(column(counter(1, 1)), {}, kept).omitted ==
          std::vector<OmittedColumn>{{"x", counts}});
}

TEST_CASE("what cannot be read is refused, with what to do") {
  const std::string floats = "; write them in another unit";
  for (const auto& [text, error] :
       {std::pair<std::string, std::string>{"x,y\n\"1,5\",a\n\"2,5\",b\n3,a\n",
                                            "x has decimal commas, as \"1,5\"; write points"},
        {"x,y\n\"0,125\",a\n\"0,250\",b\n", "x has decimal commas, as \"0,125\"; write points"},
        {"x,y\n1e200,2\n2e300,3\n",
         "x has numbers beyond 3.4e38, the range of float32, as \"1e200\"" + floats},
        {"x,y\n1e-200,2\n2e-210,3\n",
         "x has no number above 1e-200, and float32 counts from 1.2e-38" + floats}})
    CHECK(problem(text) == "f.csv: column " + error);
  CHECK(problem(column(mostly("450", 19, {"1,5"}))) ==
        "f.csv: column x has decimal commas, as \"1,5\"; write points");
  CHECK(problem(parseTable("x;y\n92,000;a\n15,500;b\n", {.separator = ';'}, "f.csv")) ==
        "f.csv: column x has commas that may be decimal or separate thousands, as \"15,500\"; write 15.500 "
        "or 15500");
  CHECK(problem(column(mostly("3/4/2023", 19, {"20/3/2023"})), {.dateOrder = DateOrder::MonthDayYear}) ==
        "f.csv: column x has dates in several orders: \"20/3/2023\" is none with the order monthDayYear "
        "(data.dateOrder); write all in one order");
}

TEST_CASE(
    "a few words among numbers or dates of new rows count as missing, other units and writings do not") {
  const InputDescription learned{.columns = {{.name = "x", .filling = 7, .missing = true},
                                             {.name = "kg", .filling = 8, .text = {.after = "kg"}},
                                             {.name = "when",
                                              .kind = ColumnKind::Date,
                                              .filling = 9,
                                              .missing = true,
                                              .order = DateOrder::MonthDayYear}}};
  CHECK(features(learned, tableOf("kg,when,x\n2 kg,1/2/2000,1\nlight,soon,low\nNA,2000-01-03,-\n")) ==
        Floats{1, 0, 2, 1, 0, /**/ 7, 1, 8, 9, 1, /**/ 7, 1, 8, 2, 0});
  const auto refused = [&](std::string_view rows) {
    return test::thrown<FileError>([&] { features(learned, tableOf(fmt::format("x,kg,when\n{}", rows))); });
  };
  const std::string good = "1,2 kg,3/14/2020\n", low = "low,2 kg,3/14/2020\n";
  for (const auto& rows : {low, low + low, good + low + good + low + good + low})  // up to half of them
    CHECK(refused(rows) == "");
  for (const auto& [row, error] :
       {std::pair{"low,low,soon\n", ""},
        {"1,2 kg,2020-03-14\n", ""},
        {"\"1,5\",2 kg,3/14/2020\n", "column x must be a finite number, and is \"1,5\""},
        {"1,\"1,5 kg\",3/14/2020\n", "column kg must be a number as \"5 kg\", and is \"1,5 kg\""},
        {"1,2 kg,14/3/2020\n",
         "column when must be a date as 12/31/2020 (month, day, year), and is \"14/3/2020\""}})
    CHECK(refused(good + good + row) == (*error == '\0' ? "" : fmt::format("f.csv: line 4: {}", error)));
  const ColumnDescription dollars{.name = "x", .text = {.before = "$"}};
  CHECK(test::thrown<FileError>([&] { features(dollars, "x,y\n$3,1\n\"$1,5\",1\n"); }) ==
        "f.csv: line 3: column x must be a number as \"$5\", and is \"$1,5\"");
  CHECK(
      refused(good + low + good + low + low) ==
      "f.csv: line 3: column x must be a finite number, and is \"low\"; 3 of its 5 values are none, too many "
      "to count as missing");
}

TEST_CASE("rows without a column or with another class, and numbers in another unit, are refused by name") {
  const InputDescription description{
      .columns = {{.name = "a"}, {.name = "b"}, {.name = "when", .kind = ColumnKind::Date}},
      .label = "y",
      .classes = {"u", "v"}};
  const auto refused = [&](std::string_view text) {
    return test::thrown<FileError>([&] { features(description, tableOf(text)); });
  };
  CHECK(refused("b,c\n1,2\n") ==
        "f.csv: lacks the columns a, when, from which the model learned; it has b, c");
  CHECK(refused("\"b, in kg\",c\n1,2\n") ==
        "f.csv: lacks the columns a, b, when, from which the model learned; it has \"b, in kg\", c");
  const auto read = tableOf("a,y\n1,w\n");
  CHECK(test::thrown<FileError>([&] { tableLabels(description, read, allRows(read)); }) ==
        "f.csv: line 2: there is no class \"w\"; there are u, v");
  CHECK(refused("a,b,when\n1,2,soon\n1,2,soon\n1,2,later\n") ==
        "f.csv: line 2: column when must be a date as 2020-12-31 (year, month, day), and is \"soon\"; 3 of "
        "its 3 "
        "values are none, too many to count as missing");
  const auto prices = described(column({"$10", "$20", "$40"}));
  const auto euros = described(column({"\u20ac10", "\u20ac20", "\u20ac40"}));
  CHECK_REFUSED(prices.requireSame(euros, "here", "there"),
                "the numbers of column x have other units or commas in here than in there");
  CHECK(test::thrown<FileError>([&] {
          features(prices, column({"\u20ac3", "\u20ac4", "\u20ac3"}));
        }) ==
        "f.csv: line 2: column x must be a number as \"$5\", and is \"\u20ac3\"; 3 of its 3 values are none, "
        "too "
        "many to count as missing");
}

TEST_CASE("the logarithm, the rank, words and parts of a date are features") {
  // Of eight places the three ones take 0 to 2, and 3 is in the middle between the places 3 and 4.
  const auto ranked = columnOf({"8", "1", "1", "1", "16", "2", "4", "32"});
  CHECK(ranked.quantiles == std::vector<double>{1, 1, 1, 2, 4, 8, 16, 32});
  CHECK(features(ranked, "x,y\n-5,1\n1,1\n3,1\n8,1\n32,1\n99,1\n") ==
        Floats{-5, 0, /**/ 1, 1 / 7.0f, /**/ 3, 0.5f, /**/ 8, 5 / 7.0f, /**/ 32, 1, /**/ 99, 1});
  Names many, words;
  for (int i = 0; i < 641; ++i) many.push_back(fmt::format("{}", (i * 7 % 641) / 2.0));
  const auto found = columnOf(many).quantiles;  // of 0, 0.5, ..., 320
  REQUIRE(found.size() == 65);
  for (std::size_t q = 0; q < found.size(); ++q) CHECK(found[q] == 5.0 * static_cast<double>(q));

  const auto logarithm = features(columnOf({"0", "-1", "2", "2", "5000.5"}), "x,y\n-6,1\n0,1\n");
  CHECK(logarithm[0] == -6);
  CHECK(logarithm[1] == doctest::Approx(-std::log(4.0)));
  CHECK(logarithm[3] == 0);

  const auto red = columnOf({"red", "blue", "red", " blue", "red", "blue ", "green", "pink", ""});
  CHECK(features(red, "x,y\nred,1\nblue,1\nnever seen,1\n,1\n") ==
        Floats{0, 1, 0, 0, /**/ 1, 0, 0, 0, /**/ 0, 0, 1, 0, /**/ 0, 0, 0, 1});
  for (int i = 0; i < 1200; ++i) words.push_back(fmt::format("word {}", i % 300));  // four rows each
  CHECK(columnOf(words).words.size() == 256);
  CHECK(columnOf(words).others);

  const auto times = columnOf({"2000-01-01 06:00", "2002-01-03 12:00", "2000-01-02 00:00"});
  // 6:00 on Saturday 2000-01-01; the year begins there.
  const auto values = features(times, "x,y\n2000-01-01 06:00,1\n");
  CHECK(values.size() == 1 + 2 + 7 + 2);
  CHECK(values[0] == 0.25f);
  CHECK(values[1] == doctest::Approx(1).epsilon(1e-4));
  CHECK(Floats(values.begin() + 3, values.begin() + 10) == Floats{0, 0, 0, 0, 0, 1, 0});
  CHECK(values[10] == doctest::Approx(0).epsilon(1e-6));
  CHECK(values[11] == doctest::Approx(1));
  CHECK(features(times, "x,y\n1999-12-27,1\n")[3] == 1);  // a Monday
}

TEST_CASE("columns are chosen or left out by name") {
  const auto read = tableOf("a,b,c,y\n1.5,2.5,3.5,u\n2.5,1.5,1.5,v\n");
  const auto names = [&](const TableOptions& options) {
    Names all;
    for (const auto& column : described(read, options).columns) all.push_back(column.name);
    return all;
  };
  CHECK(names({}) == Names{"a", "b", "c"});
  CHECK(names({.leaveOut = {"b"}}) == Names{"a", "c"});
  CHECK(names({.columns = {"c", "b"}}) == Names{"b", "c"});
  CHECK(names({.label = "b", .regression = true, .leaveOut = {"y"}}) == Names{"a", "c"});
  CHECK_REFUSED(described(read, {.columns = {"a", " a"}}),
                "column a is given twice among those to learn from (data.columns)");
  CHECK(problem(read, {.leaveOut = {"cc"}}) == "f.csv: has no column \"cc\"; the nearest of its 4 is c");
  CHECK(problem(read, {.columns = {"a", "y"}}) ==
        "f.csv: column y is to be predicted, so it cannot be a column to learn from");
  CHECK(problem(read, {.label = "b", .leaveOut = {"b"}}) ==
        "f.csv: column b is to be predicted, so it cannot be left out");
}

TEST_CASE("labels are trimmed, numbers are compared as numbers, and too many are no classes") {
  const auto read = tableOf("x,y\n1.5,yes \n2.5,no\n3.5, yes\n1.5,NA\n2.5,-\n");
  const Rows labelled{0, 1, 2};
  CHECK(labelledRows(read, "") == Rows{0, 1, 2, 4});  // "-" may mean something as a word
  CHECK(unlabelledWords(read, "") == "NA");
  CHECK(unlabelledWords(read, "", true) == "-, NA");
  CHECK(unlabelledWords(tableOf("x,y\n1,\n2,b\n"), "").empty());
  CHECK(test::thrown<FileError>([] { labelledRows(tableOf("x,y\n1,NA\n2,?\n"), ""); }) ==
        "f.csv: no row has a y; cells with ?, NA count as none");
  const test::LogLines log;
  splitTable(read, {}, 3, 1);
  CHECK(log.all() == Names{"f.csv: 1 row without y (NA) is left out"});
  const auto description = describeTable(read, {}, labelled);
  CHECK(description.classes == Names{"no", "yes"});
  const Tensor labels = tableLabels(description, read, labelled);
  CHECK(std::ranges::equal(labels.span<std::int64_t>(), Rows{1, 0, 1}));
  CHECK(described(tableOf("x,y\n1.5,1\n2.5,0\n3.5,1.0\n1.5,10\n")).classes == Names{"0", "1", "10"});
  std::string texts = "x,y\n";
  for (int i = 0; i < 100; ++i) texts += fmt::format("{}.5,text {}\n", i % 7, i % 60);
  CHECK(problem(texts) == "f.csv: column y has 60 different labels in 100 rows, too many to be classes");
}

TEST_CASE("classes that look like one, or have one row, and a header among the rows are warned of") {
  const auto warnings = [](const Table& read) {
    const test::LogLines log;
    described(read);
    return log.all();
  };
  CHECK(warnings(tableOf("x,y\n1.5,Stays\n2.5,stays\n4.5,goes\n")) ==
        Names{"warning: column y: \"Stays\" and \"stays\" are two classes, although they look like one"});
  CHECK(warnings(tableOf("x,y\n1.5,A\n2.5,A-\n4.5,A\n")).empty());

  std::string text = "x,y\n";
  for (int i = 0; i < 30; ++i)
    text += fmt::format("{}.5,{}\n", i % 7, i == 4 ? "maybe" : i % 2 ? "yes" : "no");
  const std::string one =
      "class \"maybe\" has one row, in line 6, which cannot be both learned from and tested";
  CHECK(warnings(tableOf(text)) == Names{"warning: column y: " + one});
  CHECK(warnings(tableOf(text + "1.5,never\n")) ==
        Names{"warning: column y: 2 classes have one row; " + one});

  const auto bare = [](std::string_view rows) { return parseTable(rows, {.header = false}, "f.csv"); };
  CHECK(warnings(bare("size,kind\n1.5,a\n2.5,b\n1.5,a\n2.5,b\n3,a\n3,b\n4,a\n4,b\n5,b\n")).at(0) ==
        "warning: f.csv: line 1 looks like the names of the columns, with \"size\" in the first; "
        "data.header=true reads it as names");
  CHECK(warnings(bare("low,a\nlow,b\nhigh,a\nhigh,b\n")).empty());
}

TEST_CASE("a regression's target is scaled to mean 0 and deviation 1, may have a unit, and must differ") {
  const TableOptions regression{.regression = true};
  const auto read = tableOf("x,y\n1.5,10\n2.5,20\n3.5,60\n1.5,NA\n2.5,-\n3.5,.\n1.5,None\n");
  const auto rows = labelledRows(read, "", true);
  CHECK(rows == Rows{0, 1, 2});
  CHECK(splitTable(read, regression, 1, 1).second.size() == 2);
  const auto description = describeTable(read, regression, rows);
  REQUIRE(description.targets.size() == 1);
  const auto& target = description.targets.front();
  CHECK(target.name == "y");
  CHECK(target.mean == 30);
  CHECK(target.scale == doctest::Approx(std::sqrt((400 + 100 + 900) / 3.0)));
  const Tensor labels = tableLabels(description, read, Rows{2});
  CHECK(labels.shape() == Shape{1, 1});
  CHECK(labels.data<float>()[0] == doctest::Approx(30 / target.scale));

  const auto prices = tableOf("x,y\n1,\"$1,000\"\n2,\"$3,000\"\n");
  const auto found = described(prices, regression);
  CHECK(found.targets.front().mean == 2000);
  CHECK(found.targets.front().text == NumberText{.before = "$", .thousands = true});
  CHECK(std::ranges::equal(tableLabels(found, prices, allRows(prices)).span<float>(), Floats{-1, 1}));

  const test::LogLines log;
  std::string outlier = "x,y\n1.5,1e12\n";
  for (int i = 0; i < 20; ++i) outlier += fmt::format("{}.5,{}\n", i % 7, i);
  described(tableOf(outlier), regression);
  CHECK(log.all() ==
        Names{"warning: column y: float32 tells 2 of its 21 different numbers apart, beside \"1e12\" in line "
              "2; leave such rows out, or predict another number, as its logarithm"});

  for (const auto& [text, error] :
       {std::pair{
            "x,\"y, in kg\"\n1.5,5\n2.5,5.0\n4.5,5\n",
            "column \"y, in kg\" is to be predicted, and every row to train with has \"5\"; a regression "
            "needs different numbers, and data.label=NAME names another column"},
        {"x,y\n1.5,2\n2.5,high\n", "line 3: column y must be a finite number, and is \"high\""},
        {"x,y\n1.5,2\n2.5,1e308\n",
         "line 3: column y must be between -3.4e38 and 3.4e38, the range of float32, and is \"1e308\""},
        {"x,y\n1.5,2e-50\n2.5,-1e-300\n",
         "column y has no number above 2e-50, and float32 counts from 1.2e-38; write them in another unit"}})
    CHECK(problem(text, regression) == fmt::format("f.csv: {}", error));
}

TEST_CASE("the classes are in equal shares in both parts of a table") {
  std::string text = "x,y\n", numbers = "x,y\n";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("{}.5,{}\n", i % 7, i < 30 ? "often" : "rare");
    numbers += fmt::format("{}.5,{}\n", i % 7, i % 2 == 0 ? "0" : i % 4 == 1 ? "1" : "1.0");
  }
  const auto read = tableOf(text);
  const auto [train, heldOut] = splitTable(read, {}, 32, 1);
  CHECK(train.size() == 32);
  CHECK(std::ranges::count_if(heldOut, [](auto row) { return row >= 30; }) == 2);
  CHECK(splitTable(read, {}, 32, 1).first == train);
  CHECK(splitTable(read, {}, 32, 2).first != train);
  const auto parts = splitTable(tableOf(numbers), {}, 2, 1);  // 1 and 1.0 are one class: two rows are enough
  CHECK((parts.first[0] + parts.first[1]) % 2 == 1);
}
