#include <numeric>

#include "muster/core/listeners/watch/histogram.h"
#include "muster/core/listeners/watch/layer_histograms.h"
#include "tests/support/test.h"
#include "tests/support/toy_model.h"

namespace muster::test {
namespace {

std::int64_t inBins(const Histogram& h) {
  return std::accumulate(h.bins.begin(), h.bins.end(), std::int64_t{0});
}

TEST_CASE("a histogram counts each number in the bin of its value") {
  std::vector<float> values(100);
  std::iota(values.begin(), values.end(), 0.0F);  // 0 to 99: bins of 99/50
  const auto h = histogramOf(std::span<const float>(values));
  CHECK(textOf(h.count, h.min, h.max, h.sum, h.sumOfSquares, inBins(h)) == "100 0 99 4950 328350 100");
  CHECK(h.norm() == std::sqrt(328350.0));
  CHECK(textOf(h.bins.front(), h.bins.back()) == "2 2");  // 98 and 99, the end of the last bin
  CHECK(textOf(h.edge(0), h.edge(Histogram::kBins)) == "0 99");
}

TEST_CASE("numbers that are not finite are in no bin and no sum") {
  const std::vector<float> values{kNan, 1, -kInfinity, 3, kInfinity};
  const auto h = histogramOf(std::span<const float>(values));
  CHECK(textOf(h.nonFinite, h.count, h.sum, inBins(h)) == "3 2 4 2");
  const auto none = histogramOf(std::span<const float>());
  CHECK(textOf(none.count, none.norm()) == "0 0");
}

TEST_CASE("equal numbers are all in the first bin, and the largest range has finite bins") {
  const std::vector<double> equal(7, 2.5);
  CHECK(histogramOf(std::span<const double>(equal)).bins.front() == 7);
  const double most = std::numeric_limits<double>::max();
  const std::vector<double> far{-most, 0, most};
  CHECK(inBins(histogramOf(std::span<const double>(far))) == 3);
}

TEST_CASE("a histogram of changes counts the differences of two tensors") {
  const std::vector<float> before{1, 2, 3}, after{2, 2, 1};
  const auto h = histogramOf(std::span<const float>(after), std::span<const float>(before));
  CHECK(textOf(h.min, h.max, h.sum) == "-2 1 -1");
  CHECK_CONTAINS(thrown<InvalidArgument>([&] {
                   histogramOf(std::span<const float>(after), std::span<const float>(before).first(2));
                 }),
                 "2 numbers before and 3 after");
}

TEST_CASE("changes of layers are those between two snapshots of a model") {
  ToyModel model({.size = 3});
  model.setParameters({3, 4, 0});
  LayerHistograms layers;
  CHECK(layers.after(model).empty());  // nothing was looked at before
  layers.before(model);
  CHECK(layers.begun());
  model.setParameters({0, 4, 3});
  const auto seen = layers.after(model);
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].parameters.norm() == 5);
  CHECK(seen[0].update.norm() == std::sqrt(18.0));
  CHECK(seen[0].ratio() == std::sqrt(18.0) / 5);
  CHECK(!layers.begun());
}

}  // namespace
}  // namespace muster::test
