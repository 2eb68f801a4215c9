#include "muster/datasets/detail/class_names.h"

#include "tests/support/test.h"

using namespace muster;
using namespace muster::detail;
using muster::test::thrown;

namespace {

using Words = std::set<std::string, std::less<>>;
using Classes = std::vector<std::string>;

Classes classes(const Words& words, std::int64_t rows = 1000) {
  return classesOf(words, rows, "kind", "table.csv");
}

/// The numbers from 0, each divided by `by`.
Words numbers(int count, int by = 1) {
  Words words;
  for (int i = 0; i < count; ++i) words.insert(fmt::format("{}", static_cast<double>(i) / by));
  return words;
}

}  // namespace

TEST_CASE("classes are sorted as words, or as numbers if all of them are, of each number the shortest text") {
  CHECK(classes({"b", "a", "10", "9"}) == Classes{"10", "9", "a", "b"});
  CHECK(classes({"10", "9", "-1"}) == Classes{"-1", "9", "10"});
  CHECK(classes({"1.0", "1", "2.50", "2.5"}) == Classes{"1", "2.5"});
}

TEST_CASE("a column of numbers to predict, or of texts of nearly every row, has no classes") {
  CHECK(classes(numbers(12, 2)).size() == 12);
  CHECK(
      thrown<FileError>([] { classes(numbers(13, 2)); }) ==
      "table.csv: column kind has 13 different numbers, too many to be classes; to predict a number, ask for "
      "a regression (data.regression=true)");
  CHECK(classes(numbers(200), 1000).size() == 200);  // whole numbers: a fifth of the rows
  CHECK(thrown<FileError>([] { classes(numbers(201), 1000); }) != "");
  CHECK(classes(numbers(50), 50).size() == 50);
  Words texts;
  for (int i = 0; i < 51; ++i) texts.insert(fmt::format("name {}", i));
  CHECK(classes(texts, 102).size() == 51);
  CHECK(thrown<FileError>([&] { classes(texts, 101); }) ==
        "table.csv: column kind has 51 different labels in 101 rows, too many to be classes");
}

TEST_CASE("a cell's class is found by its text or its value") {
  const Classes all{"1", "2.5", "red"};
  const ClassNumbers numbers(all);
  CHECK(numbers.find("red") == 2);
  CHECK(numbers.find(" red ") == 2);
  CHECK(numbers.find("1.00") == 0);
  CHECK(numbers.find("2.5") == 1);
  CHECK(numbers.find("3") == std::nullopt);
  CHECK(numbers.find("Red") == std::nullopt);
  CHECK(numbers.find("") == std::nullopt);
}
