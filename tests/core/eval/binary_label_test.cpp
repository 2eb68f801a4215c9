#include "muster/core/eval/detail/binary_label.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/support/allocations.h"

namespace muster {
namespace {

using detail::BinaryLabel;

BinaryLabel label(std::vector<float> with, std::vector<float> without) {
  return {.with = std::move(with), .without = std::move(without)};
}

TEST_CASE("scores of a label") {
  struct Row {
    BinaryLabel label;
    double accuracy, precision, recall, f1, auc, averagePrecision;  // auc and averagePrecision -1: NaN
  };
  for (const Row& row : {
           Row{label({0.9f, 0.2f}, {0.6f, 0.1f}), 0.5, 0.5, 0.5, 0.5, 0.75, 5.0 / 6},
           Row{label({0.9f, 0.8f}, {0.2f, 0.1f}), 1, 1, 1, 1, 1, 1},
           Row{label({0.1f}, {0.9f}), 0, 0, 0, 0, 0, 0.5},
           // At 0.5 a label is not predicted; equal predictions count half.
           Row{label({0.5f}, {0.5f}), 0.5, 0, 0, 0, 0.5, 0.5},
           Row{label({0.7f, 0.7f, 0.3f}, {0.7f}), 0.5, 2.0 / 3, 2.0 / 3, 2.0 / 3, 1.0 / 3,
               2.0 / 3 * 2 / 3 + 0.25},
           Row{label({0.9f}, {}), 1, 1, 1, 1, -1, 1},
           Row{label({}, {0.9f}), 0, 0, 0, 0, -1, -1},
           Row{label({}, {}), 0, 0, 0, 0, -1, -1},
       }) {
    const auto same = [](double value, double expected) {
      return expected < 0 ? std::isnan(value) : std::abs(value - expected) < 1e-15;
    };
    CHECK(same(row.label.accuracy(), row.accuracy));
    CHECK(same(row.label.precision(), row.precision));
    CHECK(same(row.label.recall(), row.recall));
    CHECK(same(row.label.f1(), row.f1));
    CHECK(same(row.label.auc(), row.auc));
    CHECK(same(row.label.averagePrecision(), row.averagePrecision));
  }
}

TEST_CASE("a label takes over the predictions of another one, or its own again") {
  BinaryLabel all = label({0.9f}, {0.1f, 0.2f});
  all.merge(label({0.8f}, {}));
  CHECK(all.with == std::vector<float>{0.9f, 0.8f});
  CHECK(all.without == std::vector<float>{0.1f, 0.2f});
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
