#include "muster/core/eval/detail/binary_label.h"

#include "tests/support/allocations.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using detail::BinaryLabel;

BinaryLabel label(std::vector<float> with, std::vector<float> without) {
  return {.with = std::move(with), .without = std::move(without)};
}

TEST_CASE("scores of a label") {
  struct Row {
    BinaryLabel label;
    double accuracy, precision, recall, f1, auc, averagePrecision;
  };
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const Row& row : {
           Row{label({0.9f, 0.2f}, {0.6f, 0.1f}), 0.5, 0.5, 0.5, 0.5, 0.75, 5.0 / 6},
           Row{label({0.9f, 0.8f}, {0.2f, 0.1f}), 1, 1, 1, 1, 1, 1},
           Row{label({0.1f}, {0.9f}), 0, 0, 0, 0, 0, 0.5},
           // At 0.5 a label is not predicted; equal predictions count half.
           Row{label({0.5f}, {0.5f}), 0.5, 0, 0, 0, 0.5, 0.5},
           Row{label({0.7f, 0.7f, 0.3f}, {0.7f}), 0.5, 2.0 / 3, 2.0 / 3, 2.0 / 3, 1.0 / 3,
               2.0 / 3 * 2 / 3 + 0.25},
           Row{label({0.9f}, {}), 1, 1, 1, 1, kNone, 1},
           Row{label({}, {0.9f}), 0, 0, 0, 0, kNone, kNone},
           Row{label({}, {}), 0, 0, 0, 0, kNone, kNone},
       })
    CHECK(test::digitsOf(15, row.label.accuracy(), row.label.precision(), row.label.recall(), row.label.f1(),
                         row.label.auc(), row.label.averagePrecision()) ==
          test::digitsOf(15, row.accuracy, row.precision, row.recall, row.f1, row.auc, row.averagePrecision));
}

TEST_CASE("a label takes over the predictions of another one, or its own again") {
  BinaryLabel all = label({0.9f}, {0.1f, 0.2f});
  all.merge(label({0.8f}, {}));
  all.merge(all);
  CHECK(all.with == std::vector<float>{0.9f, 0.8f, 0.9f, 0.8f});
  CHECK(all.without == std::vector<float>{0.1f, 0.2f, 0.1f, 0.2f});
}

TEST_CASE("merging many small labels costs about as much as adding their predictions") {
  const BinaryLabel one = label({0.9f}, {0.1f});
  BinaryLabel merged, added;
  const long adding = test::allocationsIn([&] {
    for (int i = 0; i < 1000; ++i) {
      added.add(0.9f, true);
      added.add(0.1f, false);
    }
  });
  CHECK(test::allocationsIn([&] {
          for (int i = 0; i < 1000; ++i) merged.merge(one);
        }) <= adding);
  CHECK(merged.with == added.with);
  CHECK(merged.without == added.without);
}

}  // namespace
}  // namespace muster
