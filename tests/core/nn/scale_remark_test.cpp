#include "muster/core/nn/scale_remark.h"

#include "muster/core/data/in_memory.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/core/nn/test.h"
#include "tests/support/log_lines.h"

using namespace muster;

namespace {

/// Eight rows of two columns with these magnitudes.
InMemoryDataSetIterator rows(float first, float second) {
  Tensor features = Tensor::empty({8, 2}), labels = Tensor::empty({8}, DType::Int64);
  for (int i = 0; i < 8; ++i) {
    features.data<float>()[2 * i] = i % 2 == 0 ? first : -first;
    features.data<float>()[2 * i + 1] = i % 3 == 0 ? second : -second;
    labels.data<std::int64_t>()[i] = i % 2;
  }
  return {features, labels, 4};
}

/// What `fit` warns of.
std::string warned(std::vector<Layer> layers, float first, float second, int workers = 0) {
  const test::LogLines lines;
  MultiLayerNetwork network({.inputShape = {2}, .layers = std::move(layers)});
  network.init();
  auto data = rows(first, second);
  if (workers == 0)
    network.fit(data);
  else
    ParallelWrapper::Builder(network).workers(workers).pinThreads(false).build().fit(data);
  std::string said;
  for (const auto& line : lines.all())
    if (line.starts_with("warning: ")) said += line.substr(9);
  return said;
}

}  // namespace

TEST_CASE("fit warns of columns whose magnitudes differ, if nothing scales them") {
  const std::string expected =
      "fit: nothing scales the features, whose magnitudes differ: column 1 is about 6e+03, column 0 about "
      "0.5; with Normalise as the first layer the network learns from all of them";
  CHECK(warned({Dense{.units = 3}, Output{.classes = 2}}, 0.5f, 6000) == expected);
  CHECK(warned({Output{.classes = 2}}, 0.5f, 6000, 1) == expected);
  CHECK(warned({Output{.classes = 2}}, 2, 40) == "");
  CHECK(warned({Output{.classes = 2}}, 0.001f, 1) == "");
  CHECK(warned({Normalise{}, Output{.classes = 2}}, 0.5f, 6000) == "");
  CHECK(warned({BatchNorm{}, Output{.classes = 2}}, 0.5f, 6000) == "");
}
