#include "muster/datasets/table.h"

#include "muster/datasets/cell_values.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

using Names = std::vector<std::string>;

Table table(std::string_view text, const TableFormat& format = {}) {
  return parseTable(text, format, "f.csv");
}

std::string tableProblem(std::string_view text, const TableFormat& format = {}) {
  return test::thrown<FileError>([&] { table(text, format); });
}

}  // namespace

TEST_CASE("cells are trimmed texts, and know their lines") {
  const auto read = table(" a ,\"b\",\n1, two words ,\n\n\" x\ny \",\"3\",\n");
  CHECK(read.names() == Names{"a", "b"});
  REQUIRE(read.rows() == 2);
  CHECK(Names{std::string(read.cell(0, 0)), std::string(read.cell(0, 1)), std::string(read.cell(1, 0)),
              std::string(read.cell(1, 1))} == Names{"1", "two words", "x\ny", "3"});
  CHECK(std::pair(read.line(0), read.line(1)) == std::pair<std::int64_t, std::int64_t>(2, 4));
  CHECK(table("\"\",a\n1,2\n").names() == Names{"1", "a"});
  const auto bare = table("1,2\n3,4\n", {.header = false});
  CHECK(bare.names() == Names{"1", "2"});
  CHECK(bare.rows() == 2);
}

TEST_CASE("columns are found by name, and the label's also by number") {
  const auto read = table("a, b ,c\n1,2,3\n");
  CHECK(read.find("b") == 1);
  CHECK_FALSE(read.find("d").has_value());
  CHECK(read.labelColumn("") == 2);
  CHECK(read.labelColumn(" b") == 1);
  CHECK(read.labelColumn("1") == 0);
  CHECK(test::thrown<FileError>([&] { table("a,a\n1,2\n").find("a"); }) ==
        "f.csv: has several columns \"a\"; give each a name of its own");
}

TEST_CASE("files that are no table say what they are, and a first line of numbers is no header") {
  CHECK(tableProblem("PAR1") == "f.csv: is a Parquet file, not CSV");
  CHECK(tableProblem("a,b\n1,caf\xE9\n") ==
        "f.csv: line 2: \"caf\\xe9\" is not UTF-8; save the file as UTF-8");
  CHECK(tableProblem("a;b\n1;2\n") ==
        "f.csv: has one column; features and a label are separated by \",\", and this file seems to have "
        "\";\" between its columns");
  CHECK(tableProblem("a,b\n1,2,,\n") == "f.csv: line 2: 4 fields, where the first line has 2");
  for (const char* text : {"5.1,3.5,setosa\n4.9,3,setosa\n", "1,2\n3,4\n", "x,7\n1,2\nx,3\n"})
    CHECK_CONTAINS(tableProblem(text), "its first line has numbers where the names");
  CHECK(table("1990,1991\n1,2\n").rows() == 1);
}

TEST_CASE("the separator is found in a file's first line") {
  test::TemporaryDirectory directory;
  const auto found = [&](const std::string& text) {
    test::writeFile(directory / "t.csv", text);
    return separatorIn(directory / "t.csv");
  };
  CHECK(found("a,b\n1;2;3;4,5\n") == ',');
  CHECK(found("a;b\n1,5;2,5\n") == ';');
  CHECK(found("a\tb\n") == '\t');
  CHECK(found("\"a;b;c\"|d\n") == '|');
  CHECK(found("alone\n") == ',');
}

TEST_CASE("a missing value is one of a few words; numbers are decimal and finite") {
  for (const char* word : {"", "NA", "?", "NaN", "null", "N/A"}) CHECK(isMissing(word));
  for (const char* word : {"0", "none", "-", ".", "x", "--", "nano"}) CHECK_FALSE(isMissing(word));
  for (const char* word : {"", "NA", "-", ".", "None"}) CHECK(isMissingNumber(word));
  for (const char* word : {"0", "-1", "--", "x"}) CHECK_FALSE(isMissingNumber(word));
  CHECK(numberIn(" +4e-1 ") == 0.4);
  CHECK(numberIn("-3.5") == -3.5);
  for (const char* text : {"", "nan", "inf", "1e999", "1 2", "0x10", "1,5", "12%"})
    CHECK_FALSE(numberIn(text).has_value());
  for (const char* text : {"1,5", "-0,25"}) CHECK(hasDecimalComma(text));
  for (const char* text : {"1.5", "1,", "1,5,2", "a,b", "1.000,5"}) CHECK_FALSE(hasDecimalComma(text));
}

TEST_CASE("dates are days since 2000, with the time of the day") {
  using enum DateOrder;
  CHECK(daysIn("2000-01-01", YearMonthDay) == 0);
  CHECK(daysIn("2001-03-01", YearMonthDay) == 366 + 31 + 28);
  CHECK(daysIn("1999/12/31", YearMonthDay) == -1);
  CHECK(daysIn("2000-01-03", MonthDayYear) == 2);
  CHECK(daysIn("3/4/2000", MonthDayYear) == 31 + 29 + 3);       // 4 March
  CHECK(daysIn("3/4/2000", DayMonthYear) == 31 + 29 + 31 + 2);  // 3 April
  CHECK(daysIn("03.04.2000", DayMonthYear) == 93);
  CHECK(daysIn("2001 Q3", YearMonthDay) == 366 + 31 + 28 + 31 + 30 + 31 + 30);  // 1 July
  CHECK(daysIn("2001Q3", YearMonthDay) == daysIn("2001-Q3", YearMonthDay));
  CHECK(daysIn("2001 Mar", YearMonthDay) == 366 + 31 + 28);
  CHECK(daysIn("2001-march", YearMonthDay) == 366 + 31 + 28);
  CHECK(daysIn("2001-03", YearMonthDay) == 366 + 31 + 28);
  CHECK(daysIn("2000 W01", YearMonthDay) == 2);     // Monday 3 January
  CHECK(daysIn("2004-W53", YearMonthDay) == 1822);  // Monday 27 December: ISO 8601's example of 2004-W53-6
  for (const auto& [cell, separator] : {std::pair("3/4/2000", '/'),
                                        {"03.04.00", '.'},
                                        {"31-12-2000 10:00", '-'},
                                        {"2000-01-02", '\0'},
                                        {"3-Apr-2000", '\0'},
                                        {"13.14.2000", '\0'},
                                        {"3.4", '\0'},
                                        {"", '\0'}})
    CHECK(separatorOfDate(cell) == separator);
  CHECK(namesDay("2000-01-02"));
  CHECK_FALSE(namesDay("2000-01"));
  for (const auto* const text : {"2001", "2001 Q5", "2001 Q0", "2001Mar", "200103", "2001-13", "2001 W54",
                                 "2001 Ma", "2001-3", "01 Q3", "2001 Q3x"})
    CHECK_FALSE(daysIn(text, YearMonthDay).has_value());
  CHECK_FALSE(daysIn("2001 Q3", DayMonthYear).has_value());
  CHECK(daysIn("2000-01-02T06:00", YearMonthDay) == 1.25);
  CHECK(daysIn("2000-01-02 18:00:00.0", YearMonthDay) == 1.75);
  CHECK(daysIn("2000-01-02T12:00:00Z", YearMonthDay) == 1.5);
  CHECK(daysIn("2000-01-02T12:00:00+06:00", YearMonthDay) == 1.25);
  const auto march24 = daysIn("2016-03-24", YearMonthDay);
  for (const auto* const text : {"24-Mar-2016", "24 March 2016", "24-mar-16", "March 24, 2016", "Mar 24 2016",
                                 "24. Mar. 2016", "2016-Mar-24", "24MAR2016", "24/Mar/2016"})
    for (const auto order : {YearMonthDay, MonthDayYear, DayMonthYear}) CHECK(daysIn(text, order) == march24);
  CHECK(daysIn("24-Mar-2016 12:00", YearMonthDay) == *march24 + 0.5);
  CHECK(daysIn("9/3/16", MonthDayYear) == daysIn("2016-09-03", YearMonthDay));
  CHECK(daysIn("03.09.16", DayMonthYear) == daysIn("2016-09-03", YearMonthDay));
  CHECK(daysIn("1 Sept 2000", YearMonthDay) == 244);
  CHECK(daysIn("31/12/40", DayMonthYear) == daysIn("2040-12-31", YearMonthDay));
  CHECK(daysIn("31/12/69", DayMonthYear) == daysIn("1969-12-31", YearMonthDay));
  for (const auto* const text : {"24-Mrz-2016", "Mar 2016", "31-Apr-2016", "24-Mar-216", "24 Mar 2016 AD",
                                 "23-03-19", "16.09.03", "1 2 2016", "2.4.10", "3/19/41", "3/19/68"})
    for (const auto order : {YearMonthDay, MonthDayYear}) CHECK_FALSE(daysIn(text, order).has_value());
  for (const char* text : {"2001-02-29", "2000-13-01", "00-01-01", "2000-01/01", "2000-01-01x",
                           "2000-01-01T25:00", "2000-01-01 12", "2000-01-01T12:00+6", "12", ""})
    CHECK_FALSE(daysIn(text, YearMonthDay).has_value());
}
