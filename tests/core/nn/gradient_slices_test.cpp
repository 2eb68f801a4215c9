#include "muster/core/nn/step/gradient_slices.h"

#include "muster/core/device/context.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using detail::GradientSlices;

/// Rows 1, 2, ...
Batch rows(std::int64_t count, std::vector<std::int64_t> parts = {}) {
  Batch batch;
  batch.features.push_back({"x", Tensor::zeros({count, 1})});
  for (std::int64_t i = 0; i < count; ++i)
    batch.features[0].value.data<float>()[i] = static_cast<float>(i + 1);
  batch.parts = std::move(parts);
  batch.stamp.firstExample = 100;
  return batch;
}

/// What a call of GradientSlices did.
struct Seen {
  std::vector<std::int64_t> sizes, firsts;  // of the slices
  StepScore score;
  float gradient = 0;
};

/// A slice's gradient is the mean of its rows and its weight their number, but 0 for a slice that begins with
/// `unweighted` or more.
Seen sliced(const Batch& batch, std::int64_t count, float unweighted = 1000) {
  Seen seen;
  Context context;
  GradientSlices slices;
  Tensor gradient = Tensor::zeros({1});
  seen.score = slices.gradient(batch, count, gradient, context, [&](const Batch& slice) {
    const auto values = slice.features[0].value.span<float>();
    seen.sizes.push_back(slice.examples());
    seen.firsts.push_back(slice.stamp.firstExample);
    float sum = 0;
    for (const float value : values) sum += value;
    gradient.data<float>()[0] = sum / static_cast<float>(values.size());
    const bool counts = values[0] < unweighted;
    return StepTicket({.score = counts ? static_cast<double>(sum) / static_cast<double>(values.size()) : 1e30,
                       .weight = counts ? static_cast<double>(values.size()) : 0});
  });
  seen.gradient = gradient.data<float>()[0];
  return seen;
}

TEST_CASE("slices have ceil(N / count) rows, or those of the batches that were joined") {
  using Sizes = std::vector<std::int64_t>;
  struct Row {
    std::int64_t rows, count;
    Sizes parts, sizes, firsts;
  };
  for (const Row& row : {Row{6, 3, {}, {2, 2, 2}, {100, 102, 104}}, Row{7, 3, {}, {3, 3, 1}, {100, 103, 106}},
                         Row{5, 4, {}, {2, 2, 1}, {100, 102, 104}}, Row{2, 4, {}, {1, 1}, {100, 101}},
                         Row{1, 4, {}, {1}, {100}}, Row{6, 2, {1, 5}, {1, 5}, {100, 101}},
                         Row{6, 3, {2, 0, 4}, {2, 4}, {100, 102}}, Row{6, 2, {6}, {6}, {100}}}) {
    INFO("rows ", row.rows, ", count ", row.count);
    const Seen seen = sliced(rows(row.rows, row.parts), row.count);
    CHECK(seen.sizes == row.sizes);
    CHECK(seen.firsts == row.firsts);
    // The mean over all rows, whatever the slices.
    const double mean = static_cast<double>(row.rows + 1) / 2;
    CHECK(seen.gradient == doctest::Approx(mean));
    CHECK(seen.score.score == doctest::Approx(mean));
    CHECK(seen.score.weight == static_cast<double>(row.rows));
  }
}

TEST_CASE("a slice without weight adds neither score nor gradient") {
  const Seen seen = sliced(rows(4), 2, 3);
  CHECK(seen.score.score == 1.5);
  CHECK(seen.score.weight == 2);
  CHECK(seen.gradient == 1.5f);
  const Seen none = sliced(rows(4), 2, 1);
  CHECK(none.score.score == 0);
  CHECK(none.score.weight == 0);
  CHECK(none.gradient == 0);
}

TEST_CASE("parts that are not the batch are refused") {
  CHECK_REFUSED(sliced(rows(5, {2, 2}), 2),
                "accumulate: a batch of 5 examples was joined from batches of 2, 2");
}

TEST_CASE("a layer that adds up numbers between workers is refused within slices, and only there") {
  struct Sum final : Peers {
    void sum(std::span<double>) override {}
  } peers;
  Context context;
  context.setPeers(&peers);
  GradientSlices slices;
  Tensor gradient = Tensor::zeros({1});
  const auto sum = [&](const Batch&) -> StepTicket {
    context.peers()->sum({});
    return StepTicket({.score = 0, .weight = 1});
  };
  CHECK_THROWS_AS(slices.gradient(rows(4), 2, gradient, context, sum), InvalidArgument);
  CHECK(context.peers() == &peers);
  CHECK_NOTHROW(context.peers()->sum({}));
}

}  // namespace
}  // namespace muster
