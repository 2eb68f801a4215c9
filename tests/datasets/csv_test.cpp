#include "muster/datasets/csv.h"

#include "tests/datasets/gzip.h"
#include "tests/support/child_process.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

CsvTable table(std::string_view text, const CsvOptions& options = {}) {
  return parseCsv(text, options, "f.csv");
}

std::string problem(std::string_view text, const CsvOptions& options = {}) {
  return test::thrown<FileError>([&] { table(text, options); });
}

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.span<float>();
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> classesIn(const CsvTable& read) {
  const auto values = read.labels.span<std::int64_t>();
  return {values.begin(), values.end()};
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
    const auto read = table(text);
    CHECK(read.features.shape() == Shape{2, 2});
    CHECK(floats(read.features) == std::vector<float>{1, 2, -3.5f, 0.4f});
    CHECK(read.columns == Words{"a", "b"});
    CHECK(read.classes == Words{"ant", "cat"});
    CHECK(classesIn(read) == std::vector<std::int64_t>{1, 0});
  }
}

TEST_CASE("the label column is given by name or number, with and without a header") {
  CHECK(table("kind,a\n7,1\n", {.label = "kind"}).columns == Words{"a"});
  CHECK(table("kind,a\n7,1\n", {.label = "1"}).columns == Words{"a"});
  const auto read = table("10;1.5\n9;2\n10;3\n", {.header = false, .label = "1", .separator = ';'});
  CHECK(read.columns == Words{"2"});
  CHECK(read.classes == Words{"9", "10"});  // as numbers
  CHECK(classesIn(read) == std::vector<std::int64_t>{1, 0, 1});
  const auto numbers = table("a,y\n1,2.5\n", {.regression = true});
  CHECK(numbers.labels.shape() == Shape{1, 1});
  CHECK(floats(numbers.labels) == std::vector<float>{2.5f});
  CHECK(numbers.classes.empty());
}

TEST_CASE("quoted fields may hold separators, quotes and line ends") {
  const auto read = table("\"a,1\",kind\n\"1\",\"big \"\"cat\"\", or\nlion\"\n2,x\n");
  CHECK(read.columns == Words{"a,1"});
  CHECK(read.classes == Words{"big \"cat\", or\nlion", "x"});
  CHECK_CONTAINS(problem("a,k\n1,\"x\ny\"\n1,2,3\n"), "line 4: 3 fields");
}

TEST_CASE("labels can be numbered by the classes of another file") {
  const auto read = table("a,k\n1,y\n", {.classes = {"x", "y"}});
  CHECK(classesIn(read) == std::vector<std::int64_t>{1});
  CHECK(problem("a,k\n1,y\n2,z\n", {.classes = {"x", "y"}}) ==
        "f.csv: line 3: there is no class \"z\"; there are x, y");
}

TEST_CASE("an invalid file is refused, and the error names the line") {
  CHECK(problem("a,b\n1,2\n1,2,3\n") == "f.csv: line 3: 3 fields, where the first line has 2");
  CHECK(problem("a,b\n1,2\n\n1\n") == "f.csv: line 4: 1 field, where the first line has 2");
  CHECK(problem("a,b\n1\n") == "f.csv: line 2: 1 field, where the first line has 2");
  CHECK(problem("a,b\nx,2\n") == "f.csv: line 2: column a must be a finite number, and is \"x\"");
  for (const char* field : {"1e308", "-1e39", "1e999", "+3.5e38"})
    CHECK(
        problem(fmt::format("a,b\n{},2\n", field)) ==
        fmt::format(
            "f.csv: line 2: column a must be between -3.4e38 and 3.4e38, the range of float32, and is \"{}\"",
            field));
  CHECK(floats(table("a,b\n3.4e38,2\n1e-50,2\n-1e-400,2\n").features) == std::vector<float>{3.4e38f, 0, 0});
  for (const char* field : {"inf", "-Infinity", "nan", "0x10"})
    CHECK(problem(fmt::format("a,b\n{},2\n", field)) ==
          fmt::format("f.csv: line 2: column a must be a finite number, and is \"{}\"", field));
  for (const char* field : {"", "1 2", "1,\""})
    CHECK_CONTAINS(problem(fmt::format("a,b\n1,2\n{},2\n", field)), "line 3: ");
  CHECK(problem("a,b\n1,\"2\n3,4\n") == "f.csv: line 2: a quote is opened here and never closed");
  CHECK(problem("a,b\n\"1\"x,2\n") == "f.csv: line 2: text follows a closing quote");
  CHECK(problem("a,b\r1,2\n") == "f.csv: line 1: a carriage return without a line feed");
  CHECK(problem("") == "f.csv: has no rows of data");
  CHECK(problem("a,b\n") == "f.csv: has no rows of data");
  CHECK(problem("a\n1\n") == "f.csv: has one column; features and a label are separated by \",\"");
  CHECK(problem("size,kind\n1,2\n", {.label = "knid"}) ==
        "f.csv: has no column \"knid\"; the nearest of its 2 is kind");
  CHECK_CONTAINS(problem("size,kind\n1,2\n", {.label = "3"}), "has no column \"3\"; it has size, kind");
  CHECK(problem("a,kind\n1,x\n2,\n") == "f.csv: line 3: column kind has no label");
  CHECK(problem("a,kind\n1,x\n2, \t\n") == "f.csv: line 3: column kind has no label");
  CHECK(problem("a\tb\n1\t2\n\t\n", {.separator = '\t'}) == "f.csv: line 3: column b has no label");
  CHECK(problem("a,a,b\n1,2,3\n", {.label = "a"}) ==
        "f.csv: has several columns \"a\"; the label's number says which one");
  CHECK(table("a,a,b\n1,2,3\n").columns == Words{"a", "a"});
  CHECK(problem({"a,b\n1\0x,2\n", 10}) ==
        "f.csv: line 2: column a must be a finite number, and is \"1\\u0000x\"");
  CHECK(problem("a,y\n1,x\n", {.regression = true}) ==
        "f.csv: line 2: column y must be a finite number, and is \"x\"");
}

TEST_CASE("a first row with a word that its column repeats is no header") {
  const std::string none =
      "f.csv: its first line has numbers where the names of the columns should be; if it has no names, set "
      "header to false (data.header=false)";
  CHECK(problem("34,yes\n20,no\n51, yes \n") == none);
  CHECK(problem("5,male,1\n6,female,0\n7,male,0\n", {.label = "3"}) == none);
  CHECK(table("34,yes\n20,no\n51,yes\n", {.header = false}).features.shape() == Shape{3, 1});
  CHECK(table("1,2,kind\n0.5,1,a\n0.25,3,b\n").columns == Words{"1", "2"});
  CHECK(table("other,kind\n1,other\n2,kind\n").classes == Words{"kind", "other"});  // no number: a header
}

TEST_CASE("rows have at most 2^20 columns") {
  const std::string many(std::size_t{1} << 20, ',');
  CHECK(problem(many + "\n", {.header = false}) == "f.csv: line 1: more than 1048576 columns");
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
          const auto read = readCsv(directory / "t.csv.gz", {.header = false});
          return fmt::format("{}", read.features.shape().toString());
        }) == "[2097152, 1]");
  for (; packed.size() <= 257 * member.size();) packed += packed;
  test::writeFile(directory / "t.csv.gz", packed);
  CHECK(test::thrown<FileError>([&] { readCsv(directory / "t.csv.gz"); })
            .ends_with("t.csv.gz: unpacks to more than 268435456 bytes, the most that is read from a gzip "
                       "file; unpack it first"));
}

TEST_CASE("CSV files are read, and a missing one is named") {
  test::TemporaryDirectory directory;
  test::writeFile(directory / "t.csv", "a,k\n1,x\n");
  CHECK(readCsv(directory / "t.csv").classes == Words{"x"});
  CHECK_THROWS_AS(readCsv(directory / "none.csv"), FileError);
}
