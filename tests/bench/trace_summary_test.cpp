#include "tests/bench/trace_summary.h"

#include "tests/support/texts.h"

using namespace muster::bench;
using muster::test::contains;

TEST_CASE("the summary divides time into activities, gaps inside a launch, and gaps between launches") {
  // Launch 1: 0-100, 110-200; launch 2 begins at 250, overlapped by a longer activity of launch 3, followed
  // by a gap. Not in order.
  const auto summary = summarise({{.name = "b", .begin = 110, .end = 200, .launch = 1},
                                  {.name = "a", .begin = 0, .end = 100, .launch = 1},
                                  {.name = "b", .begin = 270, .end = 320, .launch = 3},
                                  {.name = "a", .begin = 250, .end = 300, .launch = 2},
                                  {.name = "copy", .begin = 260, .end = 265, .launch = 4},
                                  {.name = "b", .begin = 340, .end = 350, .launch = 3}});
  CHECK(summary.span == doctest::Approx(350e-9));
  CHECK(summary.busy == doctest::Approx((100 + 90 + 70 + 10) * 1e-9));
  CHECK(summary.withinLaunches == doctest::Approx((10 + 20) * 1e-9));
  CHECK(summary.betweenLaunches == doctest::Approx(50e-9));
  REQUIRE(summary.rows.size() == 3);
  CHECK(summary.rows[0].name == "a");  // the same total as b, and before it in the alphabet
  CHECK(summary.rows[0].count == 2);
  CHECK(summary.rows[1].seconds == doctest::Approx(150e-9));
  CHECK(summary.rows[2].count == 1);
}

TEST_CASE("the time around a merge is the gap between it and the steps before and after it") {
  const auto summary =
      summarise({{.name = "conv", .begin = 0, .end = 100, .launch = 1},
                 {.name = "muster::meanKernel<float>", .begin = 130, .end = 150, .launch = 2},
                 {.name = "muster::momentsKernel<float>", .begin = 155, .end = 160, .launch = 3},
                 {.name = "conv", .begin = 200, .end = 300, .launch = 4},
                 {.name = "muster::meanKernel<float>", .begin = 290, .end = 310, .launch = 5},
                 {.name = "conv", .begin = 320, .end = 400, .launch = 6}});
  CHECK(summary.merges == 2);
  CHECK(summary.beforeMerges == doctest::Approx(30e-9));  // the second begins while a step runs
  CHECK(summary.afterMerges == doctest::Approx((40 + 10) * 1e-9));
  const auto text = describe(summary, 10, 80e-9);
  CHECK_MESSAGE(contains(text, "Around each of 2 merges the GPU had nothing to do for 0.0 us before"), text);
  CHECK_MESSAGE(contains(text, "try: shorter ends of rounds"), text);
}

TEST_CASE("an empty trace gives an empty summary, not a division by zero") {
  const auto summary = summarise({});
  CHECK(summary.span == 0);
  CHECK(summary.rows.empty());
}

TEST_CASE("the summary names what bounds a step: computation, or one of the two kinds of gaps") {
  TraceSummary summary{.span = 100e-6,
                       .busy = 90e-6,
                       .withinLaunches = 6e-6,
                       .betweenLaunches = 4e-6,
                       .rows = {{"convolve", 2, 60e-6}, {std::string(200, 'x'), 4, 30e-6}}};
  const auto working = describe(summary, 2, 46e-6);
  CHECK_MESSAGE(contains(working, "A step takes 46.0 us. In 45.0 us of them the GPU is at work (98 %)."),
                working);
  CHECK_MESSAGE(contains(working, "a step took 50.0 us, and the GPU had nothing to do for 3.0 us"), working);
  CHECK_MESSAGE(contains(working, "What bounds it: what the GPU does, above all convolve (67 %), xxx"),
                working);
  CHECK_MESSAGE(contains(working, "     30.00      1.00      30.00  66.7 %  convolve\n"), working);
  CHECK_FALSE(contains(working, std::string(91, 'x')));
  CHECK_MESSAGE(contains(working, "try: a faster convolve\n"), working);
  CHECK_FALSE(contains(working, "merges"));
  const auto waiting = describe(summary, 2, 80e-6);
  CHECK_MESSAGE(contains(waiting, "What bounds it: the time from kernel to kernel inside a launch"), waiting);
  CHECK_MESSAGE(contains(waiting, "try: fewer kernels a step"), waiting);
  summary.betweenLaunches = 7e-6;
  CHECK(contains(describe(summary, 2, 80e-6), "What bounds it: the time between launches"));
}
