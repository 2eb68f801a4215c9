#include "muster/core/interop/dl4j/dl4j.h"

#include <regex>

#include "muster/core/interop/dl4j/detail/nd4j_array.h"
#include "muster/core/interop/dl4j/detail/zip_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/interop/dl4j/made_models.h"
#include "tests/support/arrays.h"
#include "tests/support/list_iterator.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

/// The array of a file that NumPy's `save` has written, float32 in row order.
Tensor arrayIn(const std::string& npy) {
  require(npy.starts_with("\x93NUMPY"), "not an array of NumPy");
  const std::size_t length = static_cast<unsigned char>(npy[8]) | static_cast<unsigned char>(npy[9]) << 8;
  const std::string header = npy.substr(10, length);
  require(header.find("'<f4'") != header.npos && header.find("False") != header.npos,
          "not float32 in row order: {}", header);
  const auto open = header.find('(');
  const std::string sizes = header.substr(open, header.find(')') - open);
  const std::regex number("[0-9]+");
  std::vector<std::int64_t> shape;
  for (auto it = std::sregex_iterator(sizes.begin(), sizes.end(), number); it != std::sregex_iterator(); ++it)
    shape.push_back(std::stoll(it->str()));
  Tensor array = Tensor::empty(Shape(std::span<const std::int64_t>(shape)));
  require(npy.size() == 10 + length + array.bytes(), "an array of another size");
  std::memcpy(array.raw(), npy.data() + 10 + length, array.bytes());
  return array;
}

/// The arrays of a file of `savez`.
std::map<std::string, Tensor> readArrays(const std::filesystem::path& npz,
                                         const std::vector<std::string>& names) {
  const dl4j::detail::ZipFile zip(npz);
  std::map<std::string, Tensor> arrays;
  for (const auto& name : names)
    if (const auto bytes = zip.read(name + ".npy", 1 << 24)) arrays[name] = arrayIn(*bytes);
  return arrays;
}

/// A model of Deeplearning4j 1.0.0-M2 after three batches, and what it computed then and after more batches.
struct Recorded {
  std::string_view name;
  int batches;
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
    std::vector<std::string> names{"in", "out", "out_after", "after_updater"};
    for (int i = 0; i < model.batches; ++i)
      for (const char* end : {"_x", "_y"}) names.push_back("batch" + std::to_string(i) + end);
    for (int layer = 0; layer < 5; ++layer)
      for (const auto& [there, here] : kNames)
        for (const char* start : {"", "after_", "merged_", "exact_"})
          names.push_back(start + ("param_" + std::to_string(layer) + "_" + std::string(there)));
    arrays_ = readArrays(fileOf(model.name, ".npz"), names);
    if (const auto exact = fileOf(model.name, ".exact.npz"); std::filesystem::exists(exact))
      arrays_.merge(readArrays(exact, names));
    for (int i = 0; i < model.batches; ++i) {
      const std::string batch = "batch" + std::to_string(i);
      batches.emplace_back();
      batches.back().features.push_back({"features", asHere(arrays_.at(batch + "_x"))});
      batches.back().labels.push_back({"labels", asHere(arrays_.at(batch + "_y"))});
    }
  }

  Tensor here(const std::string& name) const { return asHere(arrays_.at(name)); }

  /// Calls `visit(name, tensor here, array before, array after)` for each parameter; dense weights there are
  /// the transposes, gates have another order. @param result  "after_", or another result that was recorded.
  template <typename Visit>
  void eachParameter(Network& network, const std::string& result, const Visit& visit) const {
    for (const auto& [name, before] : arrays_) {
      if (!name.starts_with("param_")) continue;
      const std::string layer = name.substr(6, 1), there = name.substr(8);
      const std::string tensor = "layer" + layer + "." + std::string(kNames.at(there));
      for (const auto& block : network.blocks())
        if (block.kind != BlockKind::Gradients && block.segments->find(tensor) != nullptr)
          visit(tensor, block.segment(tensor), before, arrays_.at(result + name));
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
  return maxDifference(a, toArray(b));
}

/// How far the parameters are from those recorded after the batches, as shares of the way that they have
/// moved: as Euclidean norms, and for the largest difference and way; and in units in the last place of a
/// parameter, or of 0.5 if it is smaller. One unit in the last place of a weight of 0.5 is 6e-8, and single
/// weights move by about 0.02.
struct Distances {
  double share = 0, largestShare = 0, units = 0;
};

Distances distances(const Recording& recording, Network& network, const std::string& result = "after_") {
  double error = 0, way = 0, largest = 0, farthest = 0, units = 0;
  recording.eachParameter(
      network, result,
      [&](const std::string& tensor, const Tensor& values, const Tensor& before, const Tensor& after) {
        for (std::int64_t i = 0; i < values.elements(); ++i) {
          const double to = valueThere(after, tensor, values.shape(), i),
                       apart = std::abs(values.data<float>()[i] - to),
                       moved = std::abs(to - valueThere(before, tensor, values.shape(), i));
          const auto size = static_cast<float>(std::max(std::abs(to), 0.5));
          error += apart * apart;
          way += moved * moved;
          largest = std::max(largest, apart);
          farthest = std::max(farthest, moved);
          units = std::max(units, apart / (std::nextafter(size, 2 * size + 1) - size));
        }
      });
  REQUIRE(way > 0.01);
  return {std::sqrt(error / way), largest / farthest, units};
}

double distance(const Recording& recording, Network& network, const std::string& result = "after_") {
  return distances(recording, network, result).share;
}

const Recorded kFitted[] = {{"convnet_nesterovs", 3},  {"convnet_adam", 3}, {"mlp_batchnorm_rmsprop", 3},
                            {"regression_adagrad", 3}, {"lstm_adam", 3},    {"made_residual", 3}};

/// How far the updater's state, as it is written for Deeplearning4j, is from the one recorded, as a share of
/// it.
double distanceOfState(const Recording& recording, Network& network) {
  const TemporaryDirectory directory;
  dl4j::save(network, directory / "after.zip");
  auto entries = entriesOf(directory / "after.zip");
  dl4j::detail::JavaReader reader(entry(entries, "updaterState.bin"));
  const auto here = dl4j::detail::readArray(reader);
  const Tensor there = recording.here("after_updater");
  REQUIRE(static_cast<std::int64_t>(here.size()) == there.elements());
  double error = 0, whole = 0;
  for (std::size_t i = 0; i < here.size(); ++i) {
    error += std::pow(here[i] - there.data<float>()[i], 2);
    whole += std::pow(there.data<float>()[i], 2);
  }
  return std::sqrt(error / whole);
}

TEST_CASE(
    "a model of Deeplearning4j predicts and trains on as there, to float32's rounding of each parameter") {
  for (const auto& model : kFitted) {
    CAPTURE(model.name);
    const Recording recording(model);
    const auto network = dl4j::load(fileOf(model.name, ".zip"));
    CHECK(network->iteration() == 3);
    CHECK(worst(network->output(recording.here("in")), recording.here("out")) <= 1e-6);
    ListIterator batches(recording.batches);
    network->fit(batches);
    CHECK(distance(recording, *network) <= 2e-6);
    CHECK(distanceOfState(recording, *network) <= 2e-6);
    CHECK(worst(network->output(recording.here("in")), recording.here("out_after")) <= 2e-6);
    // Float32 rounds a weight of 0.5 to 6e-8, which is 2.5e-6 of the way of the LSTM's weights. The gradients
    // of the biases before a batch normalisation are small differences of large numbers; there both are
    // within 2e-6 of what float64 gives.
    const bool exact = model.name == "mlp_batchnorm_rmsprop";
    const Distances single = distances(recording, *network, exact ? "exact_" : "after_");
    CAPTURE(single.largestShare);
    CAPTURE(single.units);
    CHECK((single.largestShare <= 2e-6 || (!exact && single.units <= 1)));
  }
}

TEST_CASE("a ParallelWrapper continues a model as Deeplearning4j's") {
  struct Trained {
    Recorded model;
    int workers, frequency;
    bool updaters = true;
  };
  for (const auto& [model, workers, frequency, updaters] :
       {Trained{{"wrapper_2x3_nesterovs", 12}, 2, 3}, Trained{{"wrapper_2x2_noupdaters", 12}, 2, 2, false},
        Trained{{"made_wrapper_3x2_adagrad_12", 12}, 3, 2}}) {
    CAPTURE(model.name);
    const Recording recording(model);
    const auto network = dl4j::load(fileOf(model.name, ".zip"));
    ListIterator batches(recording.batches);
    toyWrapper(*network, workers, frequency).averageUpdaters(updaters).build().fit(batches);
    CHECK(network->iteration() == 3 + 12 / workers);
    CHECK(distance(recording, *network) <= 2e-6);
    CHECK(worst(network->output(recording.here("in")), recording.here("out_after")) <= 2e-6);
    if (workers == 3) CHECK(distanceOfState(recording, *network) <= 2e-6);
  }
}

TEST_CASE("a remainder is merged, where Deeplearning4j loses it") {
  // Rounds of 5 iterations with 12 and 14 batches for 3 workers end early, or lack one worker at the end.
  for (const Recorded& model :
       {Recorded{"made_wrapper_3x2_adagrad_14", 14}, Recorded{"made_wrapper_3x5_adagrad_12", 12},
        Recorded{"made_wrapper_3x5_adagrad_14", 14}}) {
    CAPTURE(model.name);
    const Recording recording(model);
    const auto network = dl4j::load(fileOf(model.name, ".zip"));
    ListIterator batches(recording.batches);
    toyWrapper(*network, 3, model.name[15] - '0').build().fit(batches);
    CHECK(distance(recording, *network, "merged_") <= 2e-6);
    CHECK(distance(recording, *network) > 0.3);
  }
}

}  // namespace
}  // namespace muster::test
