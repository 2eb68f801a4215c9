#include "muster/datasets/detail/csv_rows.h"

#include <fmt/ranges.h>

#include "tests/support/test.h"

using namespace muster;
using namespace muster::detail;
using muster::test::thrown;

namespace {

using Fields = std::vector<std::string>;
const std::filesystem::path kPath = "table.csv";

std::vector<CsvRow> rowsOf(std::string_view text, char separator = ',') {
  CsvRows rows(text, separator, kPath);
  std::vector<CsvRow> all;
  while (auto row = rows.next()) all.push_back(*row);
  return all;
}

std::string noNames(const Fields& names, const Fields& row = {}) {
  return thrown<FileError>([&] { HeaderCheck(names, kPath).add({.line = 2, .fields = row}); });
}

}  // namespace

TEST_CASE("quotes hold separators, line ends and quotes; rows know their lines") {
  std::string rows;
  for (const auto& [line, fields] : rowsOf("\xEF\xBB\xBF"
                                           "a,b\r\n\n  \n\"x,\"\"y\"\"\n2\",\nlast,\"\""))
    rows += fmt::format("{}: {}|", line, fmt::join(fields, "|"));
  CHECK(rows == "1: a|b|4: x,\"y\"\n2||6: last||");
  CHECK(rowsOf("a\tb\n\tc", '\t')[1].fields == Fields{"", "c"});  // a tab is no blank there
  CHECK(rowsOf("").empty());
}

TEST_CASE("a broken line is named, and other files are known by their first bytes") {
  for (const auto& [text, error] :
       {std::pair<std::string, const char*>{"a,b\n\"x\ny", "line 2: a quote is opened here and never closed"},
        {"a\n\"x\"y", "line 2: text follows a closing quote"},
        {"\"x, y\";b",
         "line 1: text follows a closing quote; columns are separated by \",\", and this file seems to have "
         "\";\" between them"},
        {"a\rb", "line 1: a carriage return without a line feed"},
        {std::string(std::size_t{1} << 20, ','), "line 1: more than 1048576 columns"},
        {"\xFF\xFE"
         "a",
         "is UTF-16 text; save it as UTF-8"},
        {"PAR1", "is a Parquet file, not CSV"},
        {"\xD0\xCF\x11\xE0", "is an Excel workbook (xls), not CSV; save the sheet as CSV"},
        {"PK\x03\x04zip",
         "is a zip archive or an Excel workbook (xlsx), not CSV; unpack it, or save the sheet as CSV"}})
    CHECK(thrown<FileError>([&] { rowsOf(text); }) == fmt::format("table.csv: {}", error));
  CHECK_REFUSED(rowsOf("a", '"'), "csv: the separator cannot be a quote or a line end");
}

TEST_CASE("a first line without names is found") {
  const std::string none =
      "table.csv: its first line has numbers where the names of the columns should be; if it has no names, "
      "set header to false (data.header=false)";
  for (const auto& names : {Fields{"1.5", "width"}, {"1", "2"}, {"7", "7", "x"}, {"-1", "x"}})
    CHECK(noNames(names) == none);
  CHECK(noNames({"red", "1", "2"}, {"red", "5", "6"}) == none);  // a value, which occurs again
  for (const auto& names : {Fields{"length", "width"}, {"1990", "2000"}, {"country", "1990", "1991"}})
    CHECK(noNames(names) == "");  // years are names
  CHECK(noNames({"name", "1", "2"}, {"other", "5", "6"}) == "");
  CHECK_NOTHROW(HeaderCheck().add({.line = 1, .fields = {"red"}}));
}

TEST_CASE("the label is a column by its name or its number") {
  const Fields names{"a", "2", "label"};
  for (const auto& [label, column] : {std::pair("", 2u), {"a", 0u}, {"2", 1u}, {" 3 ", 2u}})
    CHECK(labelColumn(label, names, kPath) == column);  // by its name first
  const auto refusal = [&](const char* label, const Fields& of) {
    return thrown<FileError>([&] { labelColumn(label, of, kPath); });
  };
  CHECK(refusal("lable", names) == "table.csv: has no column \"lable\"; the nearest of its 3 is label");
  CHECK_CONTAINS(refusal("4", names), "has no column \"4\"");
  CHECK(refusal("a", {"a", "a"}) ==
        "table.csv: has several columns \"a\"; the label's number says which one");
}

TEST_CASE("a separator at a line's end makes no field; of one column, another separator is named") {
  CsvRow row{.line = 7, .fields = {"1", "2", " "}};
  requireFields(row, 2, kPath);
  CHECK(row.fields == Fields{"1", "2"});
  CHECK(thrown<FileError>([&] { requireFields(row, 4, kPath); }) ==
        "table.csv: line 7: 2 fields, where the first line has 4");
  const std::string one = "has one column; features and a label are separated by ",
                    semicolon = one + "\",\", and this file seems to have \";\" between its columns";
  // The header has no comma, but the rows have decimal ones.
  CsvRow broken{.line = 2, .fields = {"1", "5;2", "5"}};
  CHECK(thrown<FileError>([&] { requireFields(broken, 1, kPath, "a;b", ','); }) == "table.csv: " + semicolon);
  CHECK(thrown<FileError>([&] { requireFields(broken, 1, kPath, "a", ','); }) ==
        "table.csv: line 2: 3 fields, where the first line has 1");
  CHECK(oneColumn("a;b", ',') == semicolon);
  CHECK(oneColumn("a", '\t') == one + "a tab");
  Fields only{""};
  dropEmptyLast(only);
  CHECK(only == Fields{""});
}
