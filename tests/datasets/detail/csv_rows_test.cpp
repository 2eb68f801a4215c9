#include "muster/datasets/detail/csv_rows.h"

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

std::string failure(std::string_view text, char separator = ',') {
  return thrown<FileError>([&] { rowsOf(text, separator); });
}

std::string noNames(const Fields& names, const Fields& row = {}) {
  return thrown<FileError>([&] { HeaderCheck(names, kPath).add({.line = 2, .fields = row}); });
}

}  // namespace

TEST_CASE("quotes hold separators, line ends and quotes; rows know their lines") {
  const auto rows = rowsOf(
      "\xEF\xBB\xBF"
      "a,b\r\n\n  \n\"x,\"\"y\"\"\n2\",\nlast,\"\"");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].fields == Fields{"a", "b"});
  CHECK(rows[1].fields == Fields{"x,\"y\"\n2", ""});
  CHECK(rows[2].fields == Fields{"last", ""});
  CHECK(rows[0].line == 1);
  CHECK(rows[1].line == 4);
  CHECK(rows[2].line == 6);
  CHECK(rowsOf("a\tb\n\tc", '\t')[1].fields == Fields{"", "c"});  // a tab is no blank there
  CHECK(rowsOf("").empty());
}

TEST_CASE("a broken line is named, and other files are known by their first bytes") {
  CHECK(failure("a,b\n\"x\ny") == "table.csv: line 2: a quote is opened here and never closed");
  CHECK(failure("a\n\"x\"y") == "table.csv: line 2: text follows a closing quote");
  CHECK(failure("\"x, y\";b") ==
        "table.csv: line 1: text follows a closing quote; columns are separated by \",\", and this file "
        "seems to have \";\" between them");
  CHECK(failure("a\rb") == "table.csv: line 1: a carriage return without a line feed");
  CHECK(failure("\xFF\xFE"
                "a") == "table.csv: is UTF-16 text; save it as UTF-8");
  CHECK(failure("PAR1") == "table.csv: is a Parquet file, not CSV");
  CHECK_CONTAINS(failure("PK\x03\x04"), "an Excel workbook (xlsx)");
  CHECK(thrown<InvalidArgument>([] { rowsOf("a", '"'); }) ==
        "csv: the separator cannot be a quote or a line end");
}

TEST_CASE("a first line without names is found") {
  CHECK(noNames({"length", "width"}) == "");
  CHECK_CONTAINS(noNames({"1.5", "width"}), "its first line has numbers where the names");
  CHECK(noNames({"1", "2"}) != "");
  CHECK(noNames({"1990", "2000"}) == "");  // years
  CHECK(noNames({"name", "1", "2"}, {"other", "5", "6"}) == "");
  CHECK(noNames({"red", "1", "2"}, {"red", "5", "6"}) != "");  // a value, which occurs again
  CHECK_NOTHROW(HeaderCheck().add({.line = 1, .fields = {"red"}}));
}

TEST_CASE("the label is a column by its name or its number") {
  const Fields names{"a", "2", "label"};
  CHECK(labelColumn("", names, kPath) == 2);
  CHECK(labelColumn("a", names, kPath) == 0);
  CHECK(labelColumn("2", names, kPath) == 1);  // by its name first
  CHECK(labelColumn(" 3 ", names, kPath) == 2);
  CHECK(thrown<FileError>([&] { labelColumn("lable", names, kPath); }) ==
        "table.csv: has no column \"lable\"; the nearest of its 3 is label");
  CHECK(thrown<FileError>([&] { labelColumn("4", names, kPath); }) != "");
  CHECK(thrown<FileError>([&] {
          labelColumn("a", {"a", "a"}, kPath);
        }) == "table.csv: has several columns \"a\"; the label's number says which one");
}

TEST_CASE("a separator at a line's end makes no field") {
  CsvRow row{.line = 7, .fields = {"1", "2", " "}};
  requireFields(row, 2, kPath);
  CHECK(row.fields == Fields{"1", "2"});
  CHECK(thrown<FileError>([&] { requireFields(row, 4, kPath); }) ==
        "table.csv: line 7: 2 fields, where the first line has 4");
  // The header has no comma, but the rows have decimal ones.
  CsvRow broken{.line = 2, .fields = {"1", "5;2", "5"}};
  CHECK(thrown<FileError>([&] { requireFields(broken, 1, kPath, "a;b", ','); }) ==
        "table.csv: has one column; features and a label are separated by \",\", and this file seems to have "
        "\";\" between its columns");
  CHECK(thrown<FileError>([&] { requireFields(broken, 1, kPath, "a", ','); }) ==
        "table.csv: line 2: 3 fields, where the first line has 1");
  Fields one{""};
  dropEmptyLast(one);
  CHECK(one == Fields{""});
}

TEST_CASE("for one column the separator is named that the line seems to have") {
  CHECK(oneColumn("a;b", ',') ==
        "has one column; features and a label are separated by \",\", and this file seems to have \";\" "
        "between its columns");
  CHECK(oneColumn("a", '\t') == "has one column; features and a label are separated by a tab");
}
