#include "muster/datasets/detail/number_text.h"

#include "tests/support/test.h"

using namespace muster;
using muster::test::thrown;

namespace {

/// How a column of these cells is written. @param separator  of the table.
std::optional<NumberText> textOf(const std::vector<std::string>& cells, char separator = ',') {
  std::string text = std::string("price") + separator + "b\n";
  for (const auto& cell : cells) text += "\"" + cell + "\"" + separator + "1\n";
  const Table table = parseTable(text, {.separator = separator}, "table.csv");
  std::map<std::string_view, std::int64_t> words;
  for (std::int64_t row = 0; row < table.rows(); ++row) ++words[table.cell(row, 0)];
  return detail::numberTextOf(table, 0, words);
}

}  // namespace

TEST_CASE("a unit may be before or after each number, or not") {
  CHECK(textOf({"$5", "$12.50", "7"}) == NumberText{.before = "$"});
  CHECK(textOf({"0.3%", "12 %"}) == NumberText{.after = "%"});
  CHECK(textOf({"12 kg", "-3 kg"}) == NumberText{.after = "kg"});
  CHECK(textOf({"\u20ac 4"}) == NumberText{.before = "\u20ac"});
  CHECK(textOf({"50 m2", "1.5e2 m2"}) == NumberText{.after = "m2"});
  CHECK(textOf({"50m3"}) == NumberText{.after = "m3"});
  CHECK(textOf({"7 ft^2", "8 ft^2"}) == NumberText{.after = "ft^2"});
  CHECK(textOf({"3 kg/m3"}) == NumberText{.after = "kg/m3"});
}

TEST_CASE("plain numbers, words and several units have no text") {
  CHECK(textOf({"5", "-1.5e3"}) == std::nullopt);
  CHECK(textOf({"red", "5"}) == std::nullopt);
  CHECK(textOf({"5 kg", "5 lb"}) == std::nullopt);
  CHECK(textOf({"no. 5"}) == std::nullopt);  // no currency
  CHECK(textOf({"12:30", "12:45"}) == std::nullopt);
  CHECK(textOf({"5-10", "6-10"}) == std::nullopt);
  for (const auto* const unit : {"x4", "x 3", "x2", "of 3", "A2"})
    CHECK(textOf({fmt::format("7 {}", unit), fmt::format("8 {}", unit)}) == std::nullopt);
  // Nine in ten are enough.
  std::vector<std::string> cells(9, "5 kg");
  cells.emplace_back("heavy");
  CHECK(textOf(cells) == NumberText{.after = "kg"});
  cells.back() = "6 lb";  // is no word
  CHECK(textOf(cells) == std::nullopt);
  CHECK(textOf({"5 kilometres"}) == std::nullopt);  // longer than a unit
}

TEST_CASE("one decimal comma says that the commas of a column are decimal") {
  for (const auto* const cell : {"1,5", "0,125"})
    for (const std::string unit : {"", " kg"})
      for (const char separator : {',', ';'}) {
        std::vector<std::string> cells(19, "12,345" + unit);
        cells.push_back(cell + unit);
        CHECK(
            thrown<FileError>([&] { textOf(cells, separator); }) ==
            fmt::format("table.csv: column price has decimal commas, as \"{}{}\"; write points", cell, unit));
      }
  CHECK(textOf({"12,345", "1,2,3"}) == std::nullopt);
}

TEST_CASE("commas separate thousands if the table's separator is one, or nothing else is possible") {
  CHECK(textOf({"92,000", "7"}) == NumberText{.thousands = true});
  CHECK(textOf({"1,000,000"}, ';') == NumberText{.thousands = true});
  CHECK(textOf({"1,000.50"}, ';') == NumberText{.thousands = true});
  CHECK(textOf({"$92,000"}) == NumberText{.before = "$", .thousands = true});
  CHECK(thrown<FileError>([] { textOf({"92,000"}, ';'); }) ==
        "table.csv: column price has commas that may be decimal or separate thousands, as \"92,000\"; write "
        "92.000 or 92000");
  CHECK_CONTAINS(thrown<FileError>([] { textOf({"9,20"}); }), "decimal commas, as \"9,20\"");
  CHECK(textOf({"9,2,0"}) == std::nullopt);  // no groups of three
}
