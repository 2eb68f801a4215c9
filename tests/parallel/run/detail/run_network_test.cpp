#include "muster/parallel/run/detail/run_network.h"

#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/batch_of.h"
#include "tests/support/list_iterator.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::detail;

namespace {

/// Two examples of six features.
LoadedData dataWith(const Tensor& labels, std::vector<std::string> classes = {}) {
  LoadedData data;
  data.title = "the rows";
  data.train =
      std::make_unique<test::ListIterator>(std::vector{test::batchOf(Tensor::zeros({2, 6}), labels)});
  data.description.classes = std::move(classes);
  return data;
}

RunFile runWith(const Layer& output, std::uint64_t seed = 1) {
  RunFile run;
  run.network = MultiLayerConfiguration{.seed = seed, .layers = {output}}.toJson();
  return run;
}

std::vector<float> weightsOf(Network& network) {
  const auto values = network.block(BlockKind::Parameters).values.span<float>();
  return {values.begin(), values.end()};
}

const Layer kThree = Output{.classes = 3}, kSigmoid = Output{.units = 1, .loss = Loss::BinaryCrossEntropy};
const Tensor kIndices = test::integers({0, 1});

}  // namespace

TEST_CASE("a network takes its input from the data") {
  auto data = dataWith(kIndices);
  CHECK(makeNetwork(runWith(kThree), data)->parameterCount() == 6 * 3 + 3);
  auto run = runWith(kThree);
  run.data = {.type = "mixtures", .trainExamples = 8, .testExamples = 4, .batch = 4};
  run.network = R"({"name": "mlp", "hidden": 5})";
  CHECK(networkForData(run)->parameterCount() == 128 * 5 + 5 + 5 * 4 + 4);
}

TEST_CASE("data that do not fit the network are refused, naming both") {
  const auto refusal = [](const Layer& output, const Tensor& labels, const std::vector<std::string>& classes,
                          const std::vector<float>& weights = {}) {
    auto data = dataWith(labels, classes);
    data.classWeights = weights;
    return test::thrown<InvalidArgument>([&] { makeNetwork(runWith(output), data); });
  };
  const std::string begin = "network and data do not fit: ", weights = "data.classWeights: there are ";
  const Tensor labels = Tensor::zeros({2, 1});
  CHECK(refusal(kThree, kIndices, {"a", "b", "c"}, {1, 2, 3}) == "");
  CHECK(refusal(kThree, kIndices, {"a", "b, c"}) ==
        begin + "the rows has 2 classes (a, \"b, c\"), and the network's output has 3");
  CHECK(refusal(kSigmoid, labels, {"a", "b"}, {1, 2}) == "");
  CHECK(refusal(kSigmoid, labels, {"a", "b", "c"}) ==
        begin + "the rows has 3 classes (a, b, c), and the network's output has 1");
  CHECK(refusal(kThree, kIndices, {}, {1, 2}) == weights + "2 weights for 3 classes");
  CHECK(refusal(kSigmoid, labels, {}, {1, 2, 3}) == weights + "3 weights for 2 classes");
  CHECK(refusal(kThree, Tensor::zeros({2, 5}), {}).starts_with(begin));
  LoadedData indices;
  indices.train = std::make_unique<test::ListIterator>(
      std::vector{test::batchOf(test::integers({1, 2, 3, 4}, {2, 2}), kIndices)});
  CHECK_CONTAINS(
      test::thrown<InvalidArgument>([&] { makeNetwork(runWith(kThree), indices); }),
      begin + "network: the first layer takes numbers, and features int64 [1, 2] on cpu are indices: ");
  auto none = dataWith(kIndices);
  none.train = std::make_unique<test::ListIterator>(std::vector<Batch>());
  CHECK_REFUSED(makeNetwork(runWith(kThree), none), "data: there are no examples to train with");
}

TEST_CASE("labels of a file that the network's output does not have are refused before the training") {
  auto data = dataWith(kIndices);
  data.largestLabels = {{"train", 2, 7}, {"test", 3, 5}};
  CHECK_REFUSED(makeNetwork(runWith(kThree), data),
                "network and data do not fit: test: the label of example 5 (counted from 0) is 3, and the "
                "network's output has 3 classes, 0 to 2");
  CHECK_REFUSED(makeNetwork(runWith(kSigmoid), data),
                "network and data do not fit: train: the label of example 7 (counted from 0) is 2, and the "
                "network's output has 2 classes, 0 to 1");
  data.largestLabels.pop_back();
  CHECK(makeNetwork(runWith(kThree), data) != nullptr);
  CHECK_CONTAINS(test::thrown<InvalidArgument>(
                     [&] { makeNetwork(runWith(Output{.units = 3, .loss = Loss::MeanSquaredError}), data); }),
                 "the loss mse is for numbers");
}

TEST_CASE("a network begins with the weights of another model, and does not continue its training") {
  const test::TemporaryDirectory directory;
  auto data = dataWith(kIndices);
  auto run = runWith(kThree);
  const auto initial = weightsOf(*makeNetwork(run, data));
  const auto trained = makeNetwork(run, data);
  trained->setCounters(7, 2);
  trained->trainingState().push_back({"a", Tensor::zeros({1})});
  trained->save(directory / "m.safetensors");

  run = runWith(kThree, /*seed=*/2);
  CHECK(weightsOf(*makeNetwork(run, data)) != initial);
  run.training.initialModel = (directory / "m.safetensors").string();
  const auto network = makeNetwork(run, data);
  CHECK(weightsOf(*network) == initial);
  CHECK(network->iteration() == 0);
  CHECK(network->trainingState().empty());
  CHECK(network->loadedFrom().empty());
}
