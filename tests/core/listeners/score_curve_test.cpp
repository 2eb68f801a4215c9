#include "muster/core/listeners/score_curve.h"

#include "tests/support/test.h"

namespace muster::test {
namespace {

ScoreCurve curveOf(const std::vector<double>& scores) {
  ScoreCurve curve;
  for (const double score : scores) curve.add(score, 1);
  return curve;
}

TEST_CASE("a curve has one score a column, from the largest to the smallest") {
  CHECK(curveOf({3, 3, 2, 2, 1, 1, 0, 0, 0}).draw(20, 2, false) ==
        "    3.0000 '':..    \n"
        "    0.0000     '':..");
  CHECK(curveOf({2, 2, 2}).draw(20, 3, false) ==
        "    2.0000          \n"
        "           .........\n"
        "    2.0000          ");
}

TEST_CASE("a braille curve has one score a dot, with two dots a column in each of two rows of four") {
  std::vector<double> scores(18, 0);
  scores[0] = 7;
  CHECK(curveOf(scores).draw(20, 2, true) ==
        "    7.0000 \u28b9        \n"
        "    0.0000 \u28b8\u28c0\u28c0\u28c0\u28c0\u28c0\u28c0\u28c0\u28c0");
}

TEST_CASE("NaN scores leave a gap") {
  CHECK(curveOf({1, 1, 1, kNan, kNan, kNan, 0, 0, 0}).draw(20, 2, false) ==
        "    1.0000 '''      \n"
        "    0.0000       ...");
}

TEST_CASE("a single score, only NaN scores, or a curve without room, are not drawn") {
  CHECK(curveOf({kNan, kNan}).draw(20, 2, false).empty());
  CHECK(curveOf({1}).draw(80, 4, false).empty());
  CHECK(curveOf({1, 0}).draw(19, 4, false).empty());
}

TEST_CASE("more scores than the curve keeps are joined by their weights") {
  ScoreCurve curve;
  curve.add(0, 1);
  curve.add(4, 3);
  curve.add(99, 0);  // a merge without examples
  for (int i = 2; i < 256; ++i) curve.add(1, 1);
  CHECK(curve.draw(20, 2, false).starts_with("    4.0000"));
  curve.add(1, 1);
  CHECK(curve.draw(20, 2, false).starts_with("    3.0000"));
  for (int i = 0; i < 100000; ++i) curve.add(1, 1);
  CHECK_CONTAINS(curve.draw(20, 2, false).substr(10), "    1.0000 ");
}

}  // namespace
}  // namespace muster::test
