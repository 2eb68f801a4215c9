// That quotes, lines, headers and the label's column are read as in detail/csv_rows_test is shown here once.
#include "muster/datasets/csv.h"

#include <fmt/ranges.h>

#include "tests/datasets/gzip.h"
#include "tests/support/child_process.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

CsvTable parsed(std::string_view text, const CsvOptions& options = {}) {
  return parseCsv(text, options, "f.csv");
}

/// The labels, a column of classes or of numbers, and after "of" the classes' names.
std::string labelsIn(const CsvTable& read) {
  if (read.classes.empty()) return fmt::format("{}", fmt::join(read.labels.span<float>(), " "));
  return fmt::format("{} of {}", fmt::join(read.labels.span<std::int64_t>(), " "),
                     fmt::join(read.classes, ", "));
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("the last column is the label, classes are sorted, and line ends and blank lines are free") {
  for (const std::string_view text :
       {"a,b,kind\n1,2,cat\n-3.5,+4e-1,ant\n", "a,b,kind\r\n1,2,cat\r\n-3.5,0.4,ant",
        "\xEF\xBB\xBF"
        "a,b,kind\n 1 ,2,cat\n-3.5,0.4,ant\n",
        "\n\na,b,kind\n\n1,2,cat\n-3.5,0.4,ant\n\n\r\n",
        "  \na,b,kind\n \t\r\n1,2,cat\n-3.5,0.4,ant\n\t\n  "}) {
    const auto read = parsed(text);
    CHECK(read.features.shape() == Shape{2, 2});
    CHECK(std::ranges::equal(read.features.span<float>(), std::array{1.0f, 2.0f, -3.5f, 0.4f}));
    CHECK(read.columns == Words{"a", "b"});
    CHECK(labelsIn(read) == "1 0 of ant, cat");
  }
}

TEST_CASE("labels are a column by name or number, classes of this file or of another, or numbers") {
  struct Case {
    const char* text;
    CsvOptions options;
    Words columns;
    const char* labels;
  };
  for (const auto& [text, options, columns, labels] :
       {Case{"kind,a\n7,1\n", {.label = "kind"}, {"a"}, "0 of 7"},
        {"kind,a\n7,1\n", {.label = "1"}, {"a"}, "0 of 7"},
        {"10;1\n9;2\n10;3\n", {.header = false, .label = "1", .separator = ';'}, {"2"}, "1 0 1 of 9, 10"},
        {"34,yes\n20,no\n51,yes\n", {.header = false}, {"1"}, "1 0 1 of no, yes"},
        {"a,k\n1,y\n", {.classes = {"x", "y"}}, {"a"}, "1 of x, y"},
        {"a,a,b\n1,2,3\n", {}, {"a", "a"}, "0 of 3"},
        {"other,kind\n1,other\n2,kind\n", {}, {"other"}, "1 0 of kind, other"},  // no number: a header
        {"\"a,1\",kind\n\"1\",\"a \"\"cat\"\", or\nlion\"\n2,x\n",
         {},
         {"a,1"},
         "0 1 of a \"cat\", or\nlion, x"},
        {"a,y\n1,2.5\n", {.regression = true}, {"a"}, "2.5"}}) {
    const auto read = parsed(text, options);
    CHECK(read.columns == columns);
    CHECK(labelsIn(read) == labels);
  }
  CHECK(parsed("a,y\n1,2.5\n", {.regression = true}).labels.shape() == Shape{1, 1});
}

TEST_CASE("an invalid file is refused, and the error names the line") {
  struct Case {
    std::string text, error;
    CsvOptions options = {};
  };
  const std::string number = "must be a finite number, and is ",
                    noNames =
                        "its first line has numbers where the names of the columns should be; if it has no "
                        "names, set header to false (data.header=false)";
  std::vector<Case> cases{
      {"a,b\n1,2\n\n1\n", "line 4: 1 field, where the first line has 2"},
      {"a,k\n1,\"x\ny\"\n1,2,3\n", "line 4: 3 fields, where the first line has 2"},
      {"a,b\n1,\"2\n3,4\n", "line 2: a quote is opened here and never closed"},
      {"a,b\nx,2\n", "line 2: column a " + number + "\"x\""},
      {{"a,b\n1\0x,2\n", 10},
       "line 2: a NUL byte, which no text has; the file is damaged, or UTF-16 to be saved as UTF-8"},
      {"a,b\n1,2\n\"1,\"\"\",2\n", "line 3: column a " + number + "\"1,\\\"\""},
      {"a,y\n1,x\n", "line 2: column y " + number + "\"x\"", {.regression = true}},
      {"", "has no rows of data"},
      {"a,b\n", "has no rows of data"},
      {"a\n1\n", "has one column; features and a label are separated by \",\""},
      {"size,kind\n1,2\n", "has no column \"knid\"; the nearest of its 2 is kind", {.label = "knid"}},
      {"a,kind\n1,x\n2,\n", "line 3: column kind has no label"},
      {"a,kind\n1,x\n2, \t\n", "line 3: column kind has no label"},
      {"a\tb\n1\t2\n\t\n", "line 3: column b has no label", {.separator = '\t'}},
      {"a,k\n1,y\n2,z\n", "line 3: there is no class \"z\"; there are x, y", {.classes = {"x", "y"}}},
      {"34,yes\n20,no\n51, yes \n", noNames},
      {"5,male,1\n6,female,0\n7,male,0\n", noNames, {.label = "3"}}};
  for (const char* field : {"inf", "-Infinity", "nan", "0x10", "", "1 2"})
    cases.push_back(
        {fmt::format("a,b\n{},2\n", field), fmt::format("line 2: column a {}\"{}\"", number, field)});
  for (const char* field : {"1e308", "-1e39", "1e999", "+3.5e38"})
    cases.push_back(
        {fmt::format("a,b\n{},2\n", field),
         fmt::format(
             "line 2: column a must be between -3.4e38 and 3.4e38, the range of float32, and is \"{}\"",
             field)});
  for (const auto& [text, error, options] : cases)
    CHECK(test::thrown<FileError>([&] { parsed(text, options); }) == "f.csv: " + error);
  CHECK(std::ranges::equal(parsed("a,b\n3.4e38,2\n1e-50,2\n-1e-400,2\n").features.span<float>(),
                           std::array{3.4e38f, 0.0f, 0.0f}));
}

TEST_CASE(
    "a compressed table of four bytes a row takes little memory, and one that expands too much is refused") {
  test::TemporaryDirectory directory;
  std::string member;
  for (std::size_t row = 0; row < (std::size_t{1} << 18); ++row) member += "1,1\n";
  member = test::gzip(member);
  std::string packed;
  for (int i = 0; i < 8; ++i) packed += member;
  test::writeFile(directory / "t.csv.gz", packed);
  CHECK(test::inChild([&] {
          test::allowMemory(std::size_t{80} << 20);
          return readCsv(directory / "t.csv.gz", {.header = false}).features.shape().toString();
        }) == "[2097152, 1]");
  for (; packed.size() <= 257 * member.size();) packed += packed;
  test::writeFile(directory / "t.csv.gz", packed);
  CHECK_CONTAINS(test::thrown<FileError>([&] { readCsv(directory / "t.csv.gz"); }),
                 "t.csv.gz: unpacks to more than 268435456 bytes");
  CHECK_THROWS_AS(readCsv(directory / "none.csv"), FileError);
}
