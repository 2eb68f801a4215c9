#include "muster/core/data/columns_line.h"

#include "tests/support/test.h"

namespace muster {
namespace {

TEST_CASE("the columns of a table are listed with their kinds, and those left out with the reasons") {
  InputDescription table{.columns = {{.name = "size"},
                                     {.name = "colour", .kind = ColumnKind::Words, .words = {"red", "blue"}},
                                     {.name = "day", .kind = ColumnKind::Date}}};
  CHECK(columnsLine(table) == "columns: size, colour (2 words), day (date)");
  table.omitted = {{"id", "counts the rows"}, {"note", "one value"}};
  CHECK(columnsLine(table) ==
        "columns: size, colour (2 words), day (date); left out: id (counts the rows), note (one value)");
  CHECK(columnsLine({}).empty());
  CHECK(
      columnsLine({.columns = {{.name = "size, in m"}, {.name = "b"}}, .omitted = {{"c, d", "one value"}}}) ==
      "columns: \"size, in m\", b; left out: \"c, d\" (one value)");
}

}  // namespace
}  // namespace muster
