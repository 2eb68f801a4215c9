#include "muster/datasets/detail/date_order.h"

#include "muster/datasets/cell_values.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::detail;

namespace {

using Cells = std::map<std::string_view, std::int64_t>;

}  // namespace

TEST_CASE(
    "the order of dates is that in which most are dates; two are ambiguous unless both read the same days") {
  const auto order = [](const Cells& words) { return datesOf(words, {}).order; };
  CHECK(order({{"2020-03-04", 1}}) == DateOrder::YearMonthDay);
  CHECK(order({{"3/4/2020", 5}, {"3/14/2020", 1}}) == DateOrder::MonthDayYear);
  CHECK(order({{"3/4/2020", 5}, {"14/3/2020", 1}}) == DateOrder::DayMonthYear);
  CHECK(order({{"3 May 2020", 1}}) == DateOrder::YearMonthDay);  // all orders read it
  const auto some = datesOf({{"3/4/2020", 5}, {"14/3/2020", 2}, {"-", 9}, {"soon", 3}}, {});
  CHECK(some.rows == 7);
  CHECK(some.ambiguous.empty());
  CHECK(datesOf({{"3/4/2020", 5}, {"14/3/2020", 2}}, DateOrder::MonthDayYear).rows == 5);
  CHECK(datesOf({{"2020-03-04", 5}}, DateOrder::DayMonthYear).order == DateOrder::YearMonthDay);
  CHECK(datesOf({{"2011 Q3", 5}}, DateOrder::DayMonthYear).rows == 5);
  CHECK(datesOf({{"3/4/2020", 910}, {"3/14/2020", 60}, {"14/3/2020", 30}}, {}).rows == 0);  // some each
  CHECK(datesOf({{"3/4/2020", 1}, {"5/5/2020", 1}}, {}).ambiguous == "3/4/2020");
  CHECK(datesOf({{"5/5/2020", 1}, {"6/6/2020", 1}}, {}).ambiguous.empty());
  CHECK(datesOf({{"3.4.2020", 1}}, {}).order == DateOrder::DayMonthYear);
  CHECK(datesOf({{"3/4/2020", 500}, {"14/3/2020", 1}}, {}).ambiguous == "3/4/2020");  // a mistake, perhaps
  CHECK(datesOf({{"3/4/2020 10:00:00.5", 1}}, {}).order == DateOrder::MonthDayYear);
}

TEST_CASE("a date is unsure if no date with its separator says the order") {
  const auto first = [](const std::vector<std::string_view>& cells, DateOrder order, std::string_view known) {
    UnsureDates unsure(order, known);
    for (const auto cell : cells) unsure.add(cell);
    return unsure.first();
  };
  using enum DateOrder;
  CHECK(first({"5/5/2020", "3.4.2020", "5.6.2020"}, MonthDayYear, "/") == "3.4.2020");
  CHECK(first({"3/4/2020"}, MonthDayYear, "/").empty());
  CHECK(first({"3/4/2020"}, DayMonthYear, ".") == "3/4/2020");
  CHECK(first({"3.4.2020", "3.14.2020", "3.5.2020"}, MonthDayYear, "/").empty());  // 14 says it
  CHECK(first({"3.14.2020", "3-4-2020"}, MonthDayYear, "/") == "3-4-2020");
  CHECK(first({"5.5.2020", "2020-03-04", "2020.3.4", "3 Apr 2020", "3.4", ""}, MonthDayYear, "/").empty());
  CHECK(first({"3/4/2020"}, YearMonthDay, "").empty());  // it is none
  CHECK(UnsureDates(MonthDayYear).otherDays("3/4/2020") == daysIn("2020-04-03", YearMonthDay));
  CHECK(datesOf({{"9/27/2020", 5}, {"3.4.2020", 1}}, {}).unsure == "3.4.2020");
  CHECK(datesOf({{"9/27/2020", 5}, {"3.4.2020", 1}}, MonthDayYear).unsure.empty());
}

TEST_CASE("readings of short years and of ambiguous dates are logged, others are not") {
  test::LogLines log;
  const auto say = [](const Cells& words) { logReading("in, out", words, datesOf(words, {})); };
  say({{"2020-03-04", 1}});
  say({{"3/14/2020", 1}});
  CHECK(log.all().empty());
  say({{"3/14/20", 1}, {"5/30/98", 1}});
  say({{"3/4/2020", 1}});
  CHECK(log.all() ==
        std::vector<std::string>{
            "column \"in, out\": its dates with years of two digits are read as 1998-05-30 to 2020-03-14",
            "warning: column \"in, out\": its dates may have the day or the month first, and \"3/4/2020\" is "
            "read as 2020-03-04, the month first; data.dateOrder=dayMonthYear reads the day first"});
  say({{"9/27/2020", 5}, {"3.4.2020", 1}});
  CHECK(
      log.all().back() ==
      "warning: column \"in, out\": \"3.4.2020\" is read as 2020-03-04, the month first as in other dates of "
      "it, and no date with \".\" says so; write all in one way");
}

TEST_CASE("what looks like dates and is none has a reason") {
  CHECK_CONTAINS(datesProblem({{"20-03-04", 9}, {"soon", 1}}, 10), "begin with the year, as \"20-03-04\"");
  CHECK_CONTAINS(datesProblem({{"3/14/2020", 1}, {"14/3/2020", 1}}, 2), "as \"3/14/2020\" and \"14/3/2020\"");
  CHECK(datesProblem({{"3/19/45", 4}, {"7/2/69", 2}, {"7-Jul-68", 1}}, 7) ==
        "years of two digits, as in \"7-Jul-68\", may be of either century; write four digits");
  CHECK(datesProblem({{"05-11", 1}, {"12-18", 1}}, 2).empty());  // ages
  CHECK(datesProblem({{"red", 1}}, 1).empty());
}
