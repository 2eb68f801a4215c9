#include "muster/core/interop/dl4j/dl4j.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/core/interop/dl4j/numpy_arrays.h"
#include "tests/support/list_iterator.h"

using namespace muster;
using namespace muster::test;

namespace {

/// A model of Deeplearning4j 1.0.0-M2 after three batches, and what it computed then and after more batches.
struct Recorded {
  std::string_view name;
  int batches;
  std::vector<Shape> shapes = {};  ///< if the file leaves them open
};

std::filesystem::path fileOf(std::string_view name, std::string_view ending) {
  return std::filesystem::path(MUSTER_DL4J_FILES) / (std::string(name) + std::string(ending));
}

/// Sequences [N, F, T] there are [N, T, F] here.
Tensor asHere(const Tensor& there) {
  if (there.shape().rank() != 3) return there;
  const std::int64_t n = there.shape()[0], f = there.shape()[1], t = there.shape()[2];
  Tensor here = Tensor::empty({n, t, f});
  for (std::int64_t i = 0; i < n * f * t; ++i)
    here.data<float>()[i / (f * t) * f * t + i % t * f + i / t % f] = there.data<float>()[i];
  return here;
}

/// Parameters there with names as in a file of arrays ("param_0_W"), and the tensors here.
const std::map<std::string_view, std::string_view> kNames{
    {"W", "weight"},  {"RW", "recurrentWeight"}, {"b", "bias"}, {"gamma", "gamma"}, {"beta", "beta"},
    {"mean", "mean"}, {"log10stdev", "variance"}};

class Recording {
 public:
  explicit Recording(const Recorded& model) {
    std::vector<std::string> names{"in", "out", "out_after"};
    for (int i = 0; i < model.batches; ++i)
      for (const char* end : {"_x", "_y"}) names.push_back("batch" + std::to_string(i) + end);
    for (int layer = 0; layer < 5; ++layer)
      for (const auto& [there, here] : kNames)
        for (const char* start : {"", "after_"})
          names.push_back(start + ("param_" + std::to_string(layer) + "_" + std::string(there)));
    arrays_ = readArrays(fileOf(model.name, ".npz"), names);
    for (int i = 0; i < model.batches; ++i) {
      const std::string batch = "batch" + std::to_string(i);
      batches.emplace_back();
      batches.back().features.push_back({"features", asHere(arrays_.at(batch + "_x"))});
      batches.back().labels.push_back({"labels", asHere(arrays_.at(batch + "_y"))});
    }
  }

  Tensor here(const std::string& name) const { return asHere(arrays_.at(name)); }

  /// Calls `visit(name, tensor here, array before, array after)` for each parameter; dense weights there are
  /// the transposes, gates have another order.
  template <typename Visit>
  void eachParameter(Network& network, const Visit& visit) const {
    for (const auto& [name, before] : arrays_) {
      if (!name.starts_with("param_")) continue;
      const std::string layer = name.substr(6, 1), there = name.substr(8);
      const std::string tensor = "layer" + layer + "." + std::string(kNames.at(there));
      for (const auto& block : network.blocks())
        if (block.kind != BlockKind::Gradients && block.segments->find(tensor) != nullptr)
          visit(tensor, block.segment(tensor), before, arrays_.at("after_" + name));
    }
  }

  std::vector<Batch> batches;

 private:
  std::map<std::string, Tensor> arrays_;
};

double valueThere(const Tensor& array, const std::string& tensor, const Shape& here, std::int64_t i) {
  const std::span<const float> values = array.span<float>();
  if (tensor.ends_with("variance")) return std::pow(10.0, 2.0 * values[static_cast<std::size_t>(i)]);
  const bool matrix = here.rank() == 2;
  const std::int64_t columns = matrix ? here[1] : 1, rows = here[0];
  std::int64_t row = i / columns;
  if (tensor.find("ecurrent") != tensor.npos || (matrix && rows == 32) || (here.rank() == 1 && rows == 32)) {
    const std::int64_t block[] = {3, 1, 0, 2}, units = rows / 4;  // input, forget, candidate, output there
    row = block[row / units] * units + row % units;
  }
  if (here.rank() == 4) return values[static_cast<std::size_t>(i)];
  return values[static_cast<std::size_t>(matrix ? i % columns * rows + row : row)];
}

double worst(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  double most = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a.data<float>()[i]) - b.data<float>()[i]));
  return most;
}

/// How far the parameters are from those recorded after the batches, as a share of the way that they have
/// moved; both as Euclidean norms. One unit in the last place of a weight of 0.5 is 6e-8, and single weights
/// move by about 0.02.
double distance(const Recording& recording, Network& network) {
  double error = 0, way = 0;
  recording.eachParameter(network, [&](const std::string& tensor, const Tensor& values, const Tensor& before,
                                       const Tensor& after) {
    for (std::int64_t i = 0; i < values.elements(); ++i) {
      const double to = valueThere(after, tensor, values.shape(), i);
      error += std::pow(values.data<float>()[i] - to, 2);
      way += std::pow(to - valueThere(before, tensor, values.shape(), i), 2);
    }
  });
  REQUIRE(way > 0.01);
  return std::sqrt(error / way);
}

const Recorded kFitted[] = {{"convnet_nesterovs", 3},
                            {"convnet_adam", 3},
                            {"mlp_batchnorm_rmsprop", 3},
                            {"regression_adagrad", 3},
                            {"lstm_adam", 3, {{9, 5}}}};

}  // namespace

TEST_CASE("a model of Deeplearning4j predicts and trains on as there") {
  for (const auto& model : kFitted) {
    CAPTURE(model.name);
    const Recording recording(model);
    const auto network = dl4j::load(fileOf(model.name, ".zip"), {.inputShapes = model.shapes});
    CHECK(network->iteration() == 3);
    CHECK(worst(network->output(recording.here("in")), recording.here("out")) <= 1e-6);
    ListIterator batches(recording.batches);
    network->fit(batches);
    CHECK(distance(recording, *network) <= 2e-6);
    CHECK(worst(network->output(recording.here("in")), recording.here("out_after")) <= 2e-6);
  }
}

TEST_CASE("a ParallelWrapper continues a model as Deeplearning4j's") {
  for (const int frequency : {3, 2}) {
    const bool updaters = frequency == 3;
    const Recorded model{updaters ? "wrapper_2x3_nesterovs" : "wrapper_2x2_noupdaters", 12};
    CAPTURE(model.name);
    const Recording recording(model);
    const auto network = dl4j::load(fileOf(model.name, ".zip"));
    ListIterator batches(recording.batches);
    ParallelWrapper::Builder(*network)
        .workers(2)
        .averagingFrequency(frequency)
        .averageUpdaters(updaters)
        .build()
        .fit(batches);
    CHECK(network->iteration() == 9);
    CHECK(distance(recording, *network) <= 2e-6);
  }
}
