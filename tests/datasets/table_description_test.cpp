#include "muster/datasets/table_description.h"

#include <fmt/format.h>

#include "muster/core/base/log.h"
#include "muster/datasets/table_examples.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

using Names = std::vector<std::string>;
using Floats = std::vector<float>;

Table table(std::string_view text) {
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
  return table(text);
}

ColumnDescription columnOf(const Names& cells) {
  return described(column(cells)).columns.front();
}

std::string omission(const Names& cells) {
  const auto omitted = described(column(cells)).omitted;
  REQUIRE(omitted.size() == 1);
  return omitted.front().reason;
}

Floats features(const InputDescription& description, std::string_view text) {
  const auto read = table(text);
  const Tensor all = tableFeatures(description, read, allRows(read));
  const auto values = all.span<float>();
  return {values.begin(), values.end()};
}

std::string problem(std::string_view text, const TableOptions& options = {}) {
  return test::thrown<FileError>([&] { described(table(text), options); });
}

}  // namespace

TEST_CASE("a gap in numbers is the median of the training rows, and has a feature if training had gaps") {
  const auto numbers = columnOf({"1.5", "", "10", "NA", "3"});
  CHECK(numbers == ColumnDescription{.name = "x", .filling = 3, .missing = true});
  CHECK(columnOf({"1.5", "2", "10.5", "4"}) == ColumnDescription{.name = "x", .filling = 3});
  InputDescription both{.columns = {numbers, {.name = "y", .filling = -2}}};
  CHECK(features(both, "y,x\n5,7\n?,\n") == Floats{7, 0, 5, 3, 1, -2});
}

TEST_CASE("marks are gaps among numbers and dates, and words among words and labels") {
  CHECK(columnOf({"1.5", "-", "10", ".", "3"}) ==
        ColumnDescription{.name = "x", .filling = 3, .missing = true});
  CHECK(columnOf({"2000-01-03", "-", "2000-01-03", "2000-01-05", "none"}).kind == ColumnKind::Date);
  CHECK(columnOf({"-", "+", "-", "+", "-"}).words == Names{"+", "-"});
  const auto read = table("x,y\n1.5,+\n2.5,-\n3.5,+\n1.5,NA\n");
  CHECK(labelledRows(read, "").size() == 3);
  const Tensor all = tableFeatures({.columns = {{.name = "x", .filling = 7}}}, table("x,y\n-,1\n"),
                                   std::vector<std::int64_t>{0});
  CHECK(all.data<float>()[0] == 7);
}

TEST_CASE("a few words among numbers count as missing, with a warning") {
  std::string said;
  auto* const to = &said;
  setLogSink([to](LogLevel, std::string_view line) { *to += line; });
  Names cells(19, "4.5");
  cells[3] = "2.5";
  cells.emplace_back("<1");
  const auto numbers = columnOf(cells);
  setLogSink({});
  CHECK(numbers == ColumnDescription{.name = "x", .filling = 4.5, .missing = true, .wordsAreMissing = true});
  CHECK(said == "column x: 1 value is no number, as \"<1\" in line 21: it counts as missing");
  CHECK(features({.columns = {numbers}}, "x,y\nhigh,1\n2,1\n") == Floats{4.5f, 1, 2, 0});
  cells[0] = cells[1] = "many";
  CHECK(columnOf(cells).kind == ColumnKind::Words);
}

TEST_CASE("a few words among numbers or dates of new rows count as missing, whatever the training had") {
  const InputDescription learned{
      .columns = {{.name = "x", .filling = 7},
                  {.name = "kg", .filling = 8, .text = {.after = "kg"}},
                  {.name = "when", .kind = ColumnKind::Date, .filling = 9, .missing = true}}};
  CHECK(features(learned, "x,kg,when\n1,2 kg,2000-01-02\nlow,light,soon\n") ==
        Floats{1, 2, 1, 0, /**/ 7, 8, 9, 1});
  const auto refused = [&](std::string_view cells) {
    std::string text = "x,when\n";
    for (const char cell : cells) text += cell == '1' ? "1,2000-01-01\n" : "low,soon\n";
    return test::thrown<FileError>([&] { features({.columns = {learned.columns[0]}}, text); });
  };
  CHECK(refused("w") == "");
  CHECK(refused("ww") == "");
  CHECK(refused("1w1w1w") == "");  // half of them
  CHECK(
      refused("1w1ww") ==
      "f.csv: line 3: column x must be a finite number, and is \"low\"; 3 of its 5 values are none, too many "
      "to count as missing");
}

TEST_CASE("a number with a decimal comma, or a date in another order, is no missing value") {
  const InputDescription learned{
      .columns = {
          {.name = "x", .filling = 7},
          {.name = "kg", .filling = 8, .text = {.after = "kg"}},
          {.name = "when", .kind = ColumnKind::Date, .filling = 9, .order = DateOrder::MonthDayYear}}};
  const auto refused = [&](std::string_view row) {
    const auto text = fmt::format("x,kg,when\n1,2 kg,3/14/2020\n1,2 kg,3/14/2020\n{}\n", row);
    return test::thrown<FileError>([&] { features(learned, text); });
  };
  CHECK(refused("low,low,soon") == "");
  CHECK(refused("\"1,5\",2 kg,3/14/2020") ==
        "f.csv: line 4: column x must be a finite number, and is \"1,5\"");
  CHECK(refused("1,\"1,5 kg\",3/14/2020") ==
        "f.csv: line 4: column kg must be a number as \"5 kg\", and is \"1,5 kg\"");
  CHECK(refused("1,2 kg,14/3/2020") ==
        "f.csv: line 4: column when must be a date as 12/31/2020 (month, day, year), and is \"14/3/2020\"");
  CHECK(refused("1,2 kg,2020-03-14") == "");
}

TEST_CASE("commas among plain numbers are decimal ones or separate thousands, and no missing values") {
  Names cells(19, "450");
  cells[3] = "250.5";
  cells.emplace_back("1,450");
  CHECK(columnOf(cells) == ColumnDescription{.name = "x", .filling = 450, .text = {.thousands = true}});
  cells.back() = "1,5";
  CHECK(test::thrown<FileError>([&] { columnOf(cells); }) ==
        "f.csv: column x has decimal commas, as \"1,5\"; write points");
}

TEST_CASE("a few words among dates, and among numbers with a unit, count as missing, with a warning") {
  Names cells(19, "2000-01-03");
  cells[3] = "2000-01-05";
  cells.emplace_back("soon");
  test::LogLines log;
  const auto dates = columnOf(cells);
  CHECK(dates == ColumnDescription{.name = "x", .kind = ColumnKind::Date, .filling = 2, .missing = true});
  CHECK(log.all() ==
        Names{"warning: column x: 1 value is no date, as \"soon\" in line 21: it counts as missing"});
  log.forget();
  for (auto& cell : cells) cell = cell == "soon" ? "heavy" : "5 kg";
  cells[3] = "7 kg";
  const auto numbers = columnOf(cells);
  CHECK(numbers ==
        ColumnDescription{
            .name = "x", .filling = 5, .missing = true, .wordsAreMissing = true, .text = {.after = "kg"}});
  CHECK(log.all() ==
        Names{"column x: \"5 kg\" is read as the number 5",
              "warning: column x: 1 value is no number, as \"heavy\" in line 21: it counts as missing"});
}

TEST_CASE("dates with months' names or two digits of the year are dates, and ambiguous ones are told") {
  test::LogLines log;
  CHECK(columnOf({"23-Mar-2016", "24-Apr-2016", "23-Mar-2016"}).kind == ColumnKind::Date);
  CHECK(columnOf({"March 24, 2016", "April 2, 2016", "April 3, 2016"}).kind == ColumnKind::Date);
  CHECK(columnOf({"2011 Jan", "2011 Feb", "2011 Jan"}).kind == ColumnKind::Date);  // no units of 2011
  CHECK(log.all().empty());
  CHECK(columnOf({"3/19/23", "4/2/23", "3/19/23"}).order == DateOrder::MonthDayYear);
  CHECK(log.all() ==
        Names{"column x: its dates with years of two digits are read as 2023-03-19 to 2023-04-02"});
  log.forget();
  CHECK(columnOf({"03.03.24", "28.02.24", "03.03.24"}).order == DateOrder::DayMonthYear);
  log.forget();
  CHECK(columnOf({"03.03.24", "05.04.24", "03.03.24"}).order == DateOrder::DayMonthYear);
  CHECK(log.all() ==
        Names{"warning: column x: its dates may have the day or the month first, and \"05.04.24\" "
              "is read as 2024-04-05, the day first; data.dateOrder=monthDayYear reads the month "
              "first"});
  log.forget();
  const Names slashes{"3/4/2020", "5/4/2020", "3/4/2020"};
  CHECK(columnOf(slashes).order == DateOrder::MonthDayYear);
  CHECK(log.all() ==
        Names{"warning: column x: its dates may have the day or the month first, and \"3/4/2020\" "
              "is read as 2020-03-04, the month first; data.dateOrder=dayMonthYear reads the day "
              "first"});
  log.forget();
  CHECK(described(column(slashes), {.dateOrder = DateOrder::DayMonthYear}).columns.front().order ==
        DateOrder::DayMonthYear);
  CHECK(log.all().empty());
}

TEST_CASE("dates whose year is first are read beside others") {
  test::LogLines log;
  const auto half = columnOf({"3/19/2023", "2023-03-20", "3/21/2023", "2023-03-20"});
  CHECK(half.kind == ColumnKind::Date);
  CHECK(half.order == DateOrder::MonthDayYear);
  CHECK(features({.columns = {half}}, "x,y\n3/20/2023,1\n2023-03-20,1\n").front() == 8479);
  Names few(19, "2023-03-04");
  few.emplace_back("20/3/2023");
  const auto dates = columnOf(few);
  CHECK(dates.order == DateOrder::DayMonthYear);
  CHECK_FALSE(dates.missing);
  CHECK(log.all().empty());
  few.back() = "3/5/2023";
  CHECK(columnOf(few).order == DateOrder::MonthDayYear);
  CHECK_CONTAINS(log.all().at(0), "warning: column x: its dates may have the day or the month first");
}

TEST_CASE("dates in another order than the one that is asked for are refused, not missing") {
  Names cells(19, "3/4/2023");
  cells.emplace_back("20/3/2023");
  CHECK(test::thrown<FileError>([&] { described(column(cells), {.dateOrder = DateOrder::MonthDayYear}); }) ==
        "f.csv: column x has dates in several orders: \"20/3/2023\" is none with the order monthDayYear "
        "(data.dateOrder); write all in one order");
}

TEST_CASE("times without a date are words, with a warning") {
  test::LogLines log;
  CHECK(columnOf({"14:05", "9:30", "14:05", "9:30", "14:05", "9:30"}).words == Names{"14:05", "9:30"});
  CHECK(log.all() ==
        Names{"warning: column x: its times of the day, as \"9:30\", are read as words; write them with a "
              "date, or as numbers of minutes"});
}

TEST_CASE("a column that looks like dates or numbers, and is neither, says why") {
  Names unclear, mixed, codes;
  for (int i = 1; i <= 12; ++i) {
    unclear.push_back(fmt::format("23-03-{:02}", i));
    mixed.push_back(i % 2 == 0 ? fmt::format("{}/20/2020", i) : fmt::format("20/{}/2020", i));
    codes.push_back(fmt::format("12:{}:7:{}", i, i));
  }
  CHECK(omission(unclear) ==
        "nearly every row has another word; it is not said whether its dates begin with the year, as "
        "\"23-03-12\"; write the year with four digits");
  CHECK(omission(mixed) ==
        "nearly every row has another word; some of its dates have the month first and some the day, as "
        "\"8/20/2020\" and \"20/9/2020\"; write all in one order");
  CHECK(omission(codes) ==
        "nearly every row has another word; \"12:1:7:1\" is read neither as a number nor as a date");
  test::LogLines log;
  CHECK(columnOf({"23-03-19", "23-03-20", "23-03-19", "23-03-20"}).kind == ColumnKind::Words);
  CHECK_CONTAINS(log.all().at(0), "warning: column x: it is not said whether its dates begin with the year");
}

TEST_CASE("numbers with one unit, or with commas between thousands, are numbers") {
  const auto readAs = [](const Names& cells, const NumberText& text, const Floats& numbers) {
    CAPTURE(cells.front());
    const auto found = columnOf(cells);
    CHECK(found.kind == ColumnKind::Number);
    CHECK(found.text == text);
    const auto read = described(column(cells));
    CHECK(InputDescription::fromJson(read.toJson()) == read);
    const Tensor all = tableFeatures(read, column(cells), allRows(column(cells)));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      CHECK(all.span<float>()[i * static_cast<std::size_t>(read.features())] == numbers[i]);
  };
  readAs({"$45", "-$2.5", "7", "$ 8"}, {.before = "$"}, {45, -2.5f, 7, 8});
  readAs({"0.3%", "12 %", "-1.5%"}, {.after = "%"}, {0.3f, 12, -1.5f});
  readAs({"12 kg", "5 kg", "+3 kg"}, {.after = "kg"}, {12, 5, 3});
  readAs({"50 m2", "7.5 m2"}, {.after = "m2"}, {50, 7.5f});
  readAs({"92,000", "1,250,000", "-3,500", "300"}, {.thousands = true}, {92000, 1250000, -3500, 300});
  readAs({"$1,200.50", "$999"}, {.before = "$", .thousands = true}, {1200.5f, 999});
  CHECK(problem("x,y\n\"0,125\",a\n\"0,250\",b\n") ==
        "f.csv: column x has decimal commas, as \"0,125\"; write points");

  const auto semicolons = parseTable("x;y\n92,000;a\n15,500;b\n", {.separator = ';'}, "f.csv");
  CHECK(test::thrown<FileError>([&] { described(semicolons); }) ==
        "f.csv: column x has commas that may be decimal or separate thousands, as \"15,500\"; write 15.500 "
        "or 15500");
  CHECK(columnOf({"5 kg", "5 g", "5 kg", "5 g", "5 kg", "5 g"}).kind == ColumnKind::Words);
  CHECK(columnOf({"5a", "5b", "5a", "5b", "5a", "5b"}).kind == ColumnKind::Words);
  CHECK(columnOf({"PC1", "PC2", "PC1", "PC2", "PC1", "PC2"}).kind == ColumnKind::Words);

  const auto prices = described(column({"$10", "$20", "$40"}));
  const auto euros = described(column({"\u20ac10", "\u20ac20", "\u20ac40"}));
  CHECK(test::thrown<InvalidArgument>([&] { prices.requireSame(euros, "here", "there"); }) ==
        "the numbers of column x have other units or commas in here than in there");
  CHECK(test::thrown<FileError>(
            [&] { features(prices, "x,other,label\n\u20ac3,2.5,a\n\u20ac4,2.5,a\n\u20ac3,2.5,a\n"); }) ==
        "f.csv: line 2: column x must be a number as \"$5\", and is \"\u20ac3\"; 3 of its 3 values are "
        "none, too many to count as missing");
}

TEST_CASE("a regression's target may have a unit") {
  const auto read = table("x,y\n1,\"$1,000\"\n2,\"$3,000\"\n");
  const auto found = described(read, {.regression = true});
  CHECK(found.targets.front().mean == 2000);
  CHECK(found.targets.front().text == NumberText{.before = "$", .thousands = true});
  const Tensor labels = tableLabels(found, read, allRows(read));
  CHECK(labels.span<float>()[0] == -1);
  CHECK(labels.span<float>()[1] == 1);
}

TEST_CASE("a column of many magnitudes has its signed logarithm beside it") {
  const auto numbers = columnOf({"0", "-1", "2", "2", "5000.5"});
  CHECK(numbers.logScale == 2);  // median of 1, 2, 2, 5000.5
  const auto values = features({.columns = {numbers}}, "x,y\n-6,1\n0,1\n");
  CHECK(values[0] == -6);
  CHECK(values[1] == doctest::Approx(-std::log(4.0)));
  CHECK(values[3] == 0);
}

TEST_CASE("a column of more than five numbers has its rank beside it") {
  const auto numbers = columnOf({"8", "1", "1", "1", "16", "2", "4", "32"});
  CHECK(numbers.quantiles == std::vector<double>{1, 1, 1, 2, 4, 8, 16, 32});
  // Of eight places the three ones take 0 to 2, and 3 is in the middle between the places 3 and 4.
  const auto values = features({.columns = {numbers}}, "x,y\n-5,1\n1,1\n3,1\n8,1\n32,1\n99,1\n");
  CHECK(values == Floats{-5, 0, /**/ 1, 1 / 7.0f, /**/ 3, 0.5f, /**/ 8, 5 / 7.0f, /**/ 32, 1, /**/ 99, 1});
  CHECK(columnOf({"1", "2", "3", "5", "8", "8"}).quantiles.empty());
  Names many;
  for (int i = 0; i < 641; ++i) many.push_back(fmt::format("{}", (i * 7 % 641) / 2.0));
  const auto found = columnOf(many).quantiles;  // of 0, 0.5, ..., 320
  REQUIRE(found.size() == 65);
  for (std::size_t q = 0; q < found.size(); ++q) CHECK(found[q] == 5.0 * static_cast<double>(q));
}

TEST_CASE("at most 256 words have a feature of their own") {
  Names words;
  for (int i = 0; i < 1200; ++i) words.push_back(fmt::format("word {}", i % 300));  // four rows each
  const auto found = columnOf(words);
  CHECK(found.words.size() == 256);
  CHECK(found.others);
}

TEST_CASE("words have a feature each, the rare ones share one, a gap is none") {
  const auto words = columnOf({"red", "blue", "red", " blue", "red", "blue ", "green", "pink", ""});
  CHECK(
      words ==
      ColumnDescription{
          .name = "x", .kind = ColumnKind::Words, .missing = true, .words = {"blue", "red"}, .others = true});
  CHECK(features({.columns = {words}}, "x,y\nred,1\nblue,1\nnever seen,1\n,1\n") ==
        Floats{0, 1, 0, 0, /**/ 1, 0, 0, 0, /**/ 0, 0, 1, 0, /**/ 0, 0, 0, 1});
  CHECK(columnOf({"no", "no", "no", "yes"}).words == Names{"no", "yes"});
}

TEST_CASE("dates are days and the parts that vary") {
  const auto dates = columnOf({"31/12/1999", "01/01/2000", "03/01/2000"});
  CHECK(dates == ColumnDescription{.name = "x", .kind = ColumnKind::Date, .order = DateOrder::DayMonthYear});
  const auto ambiguous = columnOf({"3/4/2000", "5/4/2000", "5/5/2000"});
  CHECK(ambiguous.order == DateOrder::MonthDayYear);
  CHECK(ambiguous.week);
  CHECK_FALSE(ambiguous.year);
  const auto times = columnOf({"2000-01-01 06:00", "2002-01-03 12:00", "2000-01-02 00:00"});
  CHECK(times.year);
  CHECK(times.day);
  // 6:00 on Saturday 2000-01-01; the year begins there
  const auto values = features({.columns = {times}}, "x,y\n2000-01-01 06:00,1\n");
  CHECK(values.size() == 1 + 2 + 7 + 2);
  CHECK(values[0] == 0.25f);
  CHECK(values[1] == doctest::Approx(1).epsilon(1e-4));
  CHECK(Floats(values.begin() + 3, values.begin() + 10) == Floats{0, 0, 0, 0, 0, 1, 0});
  CHECK(values[10] == doctest::Approx(0).epsilon(1e-6));
  CHECK(values[11] == doctest::Approx(1));
  const auto before = features({.columns = {times}}, "x,y\n1999-12-27,1\n");  // a Monday
  CHECK(before[3] == 1);
}

TEST_CASE("columns that say nothing, or identify rows, are left out with a reason") {
  CHECK(omission({"4", "4", "4"}) == "every row has \"4\"");
  CHECK(omission({"", "NA", "?"}) == "no row has a value");
  CHECK(omission({"3", "1", "2", "4"}) == "its whole numbers count the rows");
  CHECK(columnOf({"1971", "1972", "1973", "1974"}).kind == ColumnKind::Number);
  const auto counter = [](int first, int step) {
    Names cells;
    for (int i = 0; i < 40; ++i) cells.push_back(fmt::format("{}", first + step * i));
    return cells;
  };
  CHECK(omission(counter(1000, 1)) == "its whole numbers count the rows");
  CHECK(omission(counter(5000, -1)) == "its whole numbers count the rows");
  CHECK(columnOf(counter(5000, 2)).kind == ColumnKind::Number);
  CHECK(columnOf(counter(1971, 1)).kind == ColumnKind::Number);  // years
  CHECK(columnOf(counter(20, 1)).kind == ColumnKind::Number);    // ages
  CHECK(columnOf(counter(-20, 1)).kind == ColumnKind::Number);
  CHECK(described(column(counter(1000, 1)), {.columns = {"x"}}).columns.front().kind == ColumnKind::Number);
  auto mixed = counter(1000, 1);
  std::swap(mixed[3], mixed[7]);
  CHECK(columnOf(mixed).kind == ColumnKind::Number);
  Names names;
  for (int i = 0; i < 20; ++i) names.push_back(fmt::format("Name {}", i));
  CHECK(omission(names) == "nearly every row has another word");
  names.insert(names.end(), {"Name 1", "Name 2", "Name 1", "Name 2"});
  CHECK(columnOf(names).words == Names{"Name 1", "Name 2"});
  CHECK(omission({"a", "a", "b", "c", "b", "c"}) == "no word is in 3 rows or more");
  CHECK(problem("id,y\n1,a\n2,b\n3,a\n") ==
        "f.csv: has no column to learn from; id: its whole numbers count the rows");
}

TEST_CASE("a column that counts the rows is left out, whichever rows are held out") {
  std::string text = "key,x,y\n";
  for (int i = 1; i <= 40; ++i) text += fmt::format("{},{},{}\n", i, i % 7, i % 2 ? "a" : "b");
  const auto read = parseTable(text, {}, "f.csv");
  for (const auto& kept : {std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}, {20, 39, 25, 31}, {39, 3, 2, 0}}) {
    const auto description = describeTable(read, {.label = "y"}, kept);
    REQUIRE(description.columns.size() == 1);
    CHECK(description.columns.front().name == "x");
    REQUIRE(description.omitted.size() == 1);
    CHECK(description.omitted.front().reason == "its whole numbers count the rows");
  }
}

TEST_CASE("columns are chosen or left out by name") {
  const auto read = table("a,b,c,y\n1.5,2.5,3.5,u\n2.5,1.5,1.5,v\n");
  const auto names = [&](const TableOptions& options) {
    Names all;
    for (const auto& column : described(read, options).columns) all.push_back(column.name);
    return all;
  };
  CHECK(names({}) == Names{"a", "b", "c"});
  CHECK(names({.leaveOut = {"b"}}) == Names{"a", "c"});
  CHECK(names({.columns = {"c", "b"}}) == Names{"b", "c"});
  CHECK(names({.label = "b", .regression = true, .leaveOut = {"y"}}) == Names{"a", "c"});
  CHECK(test::thrown<FileError>([&] { described(read, {.leaveOut = {"cc"}}); }) ==
        "f.csv: has no column \"cc\"; the nearest of its 4 is c");
  CHECK(test::thrown<FileError>([&] {
          described(read, {.columns = {"a", "y"}});
        }) == "f.csv: column y is to be predicted, so it cannot be a column to learn from");
  CHECK(test::thrown<FileError>([&] { described(read, {.label = "b", .leaveOut = {"b"}}); }) ==
        "f.csv: column b is to be predicted, so it cannot be left out");
}

TEST_CASE("labels are trimmed, numbers are compared as numbers, and too many are no classes") {
  const auto read = table("x,y\n1.5,yes \n2.5,no\n3.5, yes\n");
  const auto description = described(read);
  CHECK(description.classes == Names{"no", "yes"});
  const Tensor labels = tableLabels(description, read, allRows(read));
  CHECK(std::ranges::equal(labels.span<std::int64_t>(), std::vector<std::int64_t>{1, 0, 1}));
  CHECK(described(table("x,y\n1.5,1\n2.5,0\n3.5,1.0\n1.5,10\n")).classes == Names{"0", "1", "10"});

  std::string decimals = "x,y\n", codes = "x,y\n", texts = "x,y\n";
  for (int i = 0; i < 100; ++i) {
    decimals += fmt::format("{}.5,{}.5\n", i % 7, i % 30);
    codes += fmt::format("{}.5,{}\n", i % 7, i % 50);
    texts += fmt::format("{}.5,text {}\n", i % 7, i % 60);
  }
  CHECK(problem(decimals) ==
        "f.csv: column y has 30 different numbers, too many to be classes; to predict a "
        "number, ask for a regression (data.regression=true)");
  CHECK(described(table(codes)).classes.size() == 50);
  CHECK(problem(texts) == "f.csv: column y has 60 different labels in 100 rows, too many to be classes");
}

TEST_CASE("classes that differ in capitals or blanks alone are warned of") {
  test::LogLines log;
  described(table("x,y\n1.5,Stays\n2.5,stays\n4.5,goes\n"));
  CHECK(log.all() ==
        Names{"warning: column y: \"Stays\" and \"stays\" are two classes, although they look like one"});
  log.forget();
  described(table("x,y\n1.5,A\n2.5,A-\n4.5,A\n"));
  described(table("x,y\n1.5,1\n2.5,-1\n4.5,1\n"));
  CHECK(log.all().empty());
}

TEST_CASE("a class with one row among many is warned of") {
  std::string text = "x,y\n";
  for (int i = 0; i < 30; ++i)
    text += fmt::format("{}.5,{}\n", i % 7, i == 4 ? "maybe" : i % 2 ? "yes" : "no");
  test::LogLines log;
  described(table(text));
  CHECK(log.all() == Names{"warning: column y: class \"maybe\" has one row, in line 6, which cannot be both "
                           "learned from and tested"});
  log.forget();
  described(table(text + "1.5,never\n"));
  CHECK(log.all() == Names{"warning: column y: 2 classes have one row; class \"maybe\" has one row, in line 6, "
                           "which cannot be both learned from and tested"});
}

TEST_CASE("a first row of words that are nowhere else is warned of in a table without a header") {
  test::LogLines log;
  described(parseTable("size,kind\n1.5,a\n2.5,b\n1.5,a\n2.5,b\n3,a\n3,b\n4,a\n4,b\n5,b\n", {.header = false},
                       "f.csv"));
  CHECK(log.all().at(0) ==
        "warning: f.csv: line 1 looks like the names of the columns, with \"size\" in the "
        "first; data.header=true reads it as names");
  log.forget();
  described(parseTable("low,a\nlow,b\nhigh,a\nhigh,b\n", {.header = false}, "f.csv"));
  CHECK(log.all().empty());
}

TEST_CASE("whole numbers with a zero at the front are numbers, and a line says so") {
  test::LogLines log;
  CHECK(columnOf({"01008", "2001", "01008", "2001"}).kind == ColumnKind::Number);
  CHECK(log.all() ==
        Names{"column x: \"01008\" is read as the number 1008; if it is a code, letters before it make "
              "it a word"});
}

TEST_CASE("a regression needs different numbers") {
  CHECK(problem("x,\"y, in kg\"\n1.5,5\n2.5,5.0\n4.5,5\n", {.regression = true}) ==
        "f.csv: column \"y, in kg\" is to be predicted, and every row to train with has \"5\"; a regression "
        "needs different numbers, and data.label=NAME names another column");
}

TEST_CASE("a regression's target is scaled to mean 0 and deviation 1") {
  const auto read = table("x,y\n1.5,10\n2.5,20\n3.5,60\n1.5,NA\n");
  const auto rows = labelledRows(read, "");
  CHECK(rows.size() == 3);
  const auto gaps = table("x,y\n1.5,10\n2.5,-\n3.5,.\n1.5,None\n2.5,20\n");
  CHECK(labelledRows(gaps, "", true) == std::vector<std::int64_t>{0, 4});
  CHECK(labelledRows(gaps, "").size() == 5);  // as words they may mean something
  CHECK(splitTable(gaps, {.regression = true}, 1, 1).second.size() == 1);
  const auto description = describeTable(read, {.regression = true}, rows);
  REQUIRE(description.targets.size() == 1);
  const auto& target = description.targets.front();
  CHECK(target.name == "y");
  CHECK(target.mean == 30);
  CHECK(target.scale == doctest::Approx(std::sqrt((400 + 100 + 900) / 3.0)));
  const Tensor labels = tableLabels(description, read, std::vector<std::int64_t>{2});
  CHECK(labels.shape() == Shape{1, 1});
  CHECK(labels.data<float>()[0] == doctest::Approx(30 / target.scale));
  CHECK(problem("x,y\n1.5,2\n2.5,high\n", {.regression = true}) ==
        "f.csv: line 3: column y must be a finite number, and is \"high\"");
}

TEST_CASE("numbers that float32 does not hold are refused by its range, or count as missing") {
  CHECK(problem("x,y\n1.5,2\n2.5,1e308\n", {.regression = true}) ==
        "f.csv: line 3: column y must be between -3.4e38 and 3.4e38, the range of float32, and is \"1e308\"");
  CHECK(problem("x,y\n1.5,2e-50\n2.5,-1e-300\n", {.regression = true}) ==
        "f.csv: column y has no number above 2e-50, and float32 counts from 1.2e-38; write them in another "
        "unit");
  CHECK(problem("x,y\n1e200,2\n2e300,3\n", {.regression = true}) ==
        "f.csv: column x has numbers beyond 3.4e38, the range of float32, as \"1e200\"; write them in "
        "another unit");
  CHECK(problem("x,y\n1e-200,2\n2e-210,3\n", {.regression = true}) ==
        "f.csv: column x has no number above 1e-200, and float32 counts from 1.2e-38; write them in another "
        "unit");
  std::string text = "x,y\n-1e308,a\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("{}.5,b\n", i);
  test::LogLines log;
  const auto read = table(text);
  const auto described = describeTable(read, {}, allRows(read));
  CHECK(!log.lineWith({"column x: 1 value is no number within float32's 3.4e38, as \"-1e308\" in line 2: it "
                       "counts as "
                       "missing"})
             .empty());
  CHECK(described.columns.front().missing);
}

TEST_CASE("the classes are in equal shares in both parts of a table") {
  std::string text = "x,y\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{}.5,{}\n", i % 7, i < 30 ? "often" : "rare");
  const auto read = table(text);
  const auto [train, heldOut] = splitTable(read, {}, 32, 1);
  CHECK(train.size() == 32);
  CHECK(std::ranges::count_if(heldOut, [](auto row) { return row >= 30; }) == 2);
  CHECK(splitTable(read, {}, 32, 1).first == train);
  CHECK(splitTable(read, {}, 32, 2).first != train);

  text = "x,y\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("{}.5,{}\n", i % 7, i % 2 == 0 ? "0" : i % 4 == 1 ? "1" : "1.0");
  const auto parts = splitTable(table(text), {}, 2, 1);  // 1 and 1.0 are one class: two rows are enough
  CHECK((parts.first[0] + parts.first[1]) % 2 == 1);
}

TEST_CASE("rows that do not fit a description are refused by name") {
  const InputDescription description{
      .columns = {{.name = "a"}, {.name = "b"}, {.name = "when", .kind = ColumnKind::Date}},
      .label = "y",
      .classes = {"u", "v"}};
  const auto refused = [&](std::string_view text) {
    return test::thrown<FileError>([&] { features(description, text); });
  };
  CHECK(refused("b,c\n1,2\n") ==
        "f.csv: lacks the columns a, when, from which the model learned; it has b, c");
  CHECK(refused("\"b, in kg\",c\n1,2\n") ==
        "f.csv: lacks the columns a, b, when, from which the model learned; it has \"b, in kg\", c");
  CHECK(refused("a,b,when\n1,2,2000-01-01\nx,2,2000-01-01\ny,2,2000-01-01\nz,2,2000-01-01\n") ==
        "f.csv: line 3: column a must be a finite number, and is \"x\"; 3 of its 4 values are none, too "
        "many to count as missing");
  CHECK(refused("a,b,when\n1,2,soon\n1,2,soon\n1,2,later\n") ==
        "f.csv: line 2: column when must be a date as 2020-12-31 (year, month, day), and is \"soon\"; 3 "
        "of its 3 values are none, too many to count as missing");
  const auto read = table("a,y\n1,w\n");
  CHECK(test::thrown<FileError>([&] { tableLabels(description, read, allRows(read)); }) ==
        "f.csv: line 2: there is no class \"w\"; there are u, v");
  CHECK(problem("x,y\n\"1,5\",a\n\"2,5\",b\n3,a\n") ==
        "f.csv: column x has decimal commas, as \"1,5\"; write points");
}
