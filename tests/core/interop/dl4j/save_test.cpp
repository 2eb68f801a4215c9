// The way back.
#include "muster/core/interop/dl4j/dl4j.h"
#include "muster/core/io/json_value.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/interop/dl4j/made_models.h"
#include "tests/support/arrays.h"
#include "tests/support/batch_of.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

const std::filesystem::path kFiles = MUSTER_DL4J_FILES;

/// The same value with each number as a double: 1 and 1.0 are equal.
boost::json::value plain(boost::json::value value) {
  if (value.is_number()) return value.to_number<double>();
  if (value.is_array())
    for (auto& element : value.get_array()) element = plain(element);
  if (value.is_object())
    for (auto& [name, member] : value.get_object()) member = plain(member);
  return value;
}

/// Writes a network, reads it again, and checks that both hold the same bits.
std::unique_ptr<Network> again(Network& network, const std::filesystem::path& path) {
  dl4j::save(network, path);
  auto read = dl4j::load(path);
  for (const auto& block : network.state()) {
    if (block->kind == BlockKind::Gradients) continue;
    for (const auto& segment : block->segments->segments)
      for (const auto& other : read->state())
        if (other->name == block->name && other->segments->find(segment.name) != nullptr)
          CHECK_MESSAGE(sameBits(block->segment(segment), other->segment(segment.name)), segment.name);
  }
  CHECK(read->parameterCount() == network.parameterCount());
  return read;
}

/// Checks that a network computes the same bits after it was written and read again.
std::unique_ptr<Network> checkComputesAgain(Network& network, const Batch& batch) {
  const TemporaryDirectory directory;
  auto read = again(network, directory / "model.zip");
  const auto here = network.outputs(batch), there = read->outputs(batch);
  REQUIRE(here.size() == there.size());
  for (std::size_t i = 0; i < here.size(); ++i) CHECK(sameBits(here[i], there[i]));
  return read;
}

TEST_CASE("a model of Deeplearning4j comes back to the same bytes") {
  const TemporaryDirectory directory;
  for (const std::string name :
       {"convnet_nesterovs", "convnet_adam", "regression_adagrad", "lstm_adam", "mlp_batchnorm_rmsprop",
        "wrapper_2x3_nesterovs", "wrapper_2x2_noupdaters", "made_residual", "made_wrapper_3x2_adagrad_12"}) {
    CAPTURE(name);
    const auto from = kFiles / (name + ".zip"), to = directory / "again.zip";
    const auto network = dl4j::load(from);
    const auto read = again(*network, to);
    CHECK(read->toJson() == network->toJson());
    auto before = entriesOf(from), after = entriesOf(to);
    for (const char* bytes : {"updaterState.bin", "coefficients.bin"})
      CHECK((entry(before, bytes) == entry(after, bytes)));
    if (name == "made_residual") continue;  // its vertices are in another order here
    // Every option of every layer, but for which of two names a loss has.
    const std::string loss = "LossNegativeLogLikelihood";
    std::string there = entry(before, "configuration.json");
    if (there.find(loss) != there.npos) there = replaced(there, loss, "LossMCXENT");
    CHECK(plain(parseJson(there)) == plain(parseJson(entry(after, "configuration.json"))));
  }
}

TEST_CASE("variances that have changed are written as they are") {
  const TemporaryDirectory directory;
  const auto network = dl4j::load(kFiles / "mlp_batchnorm_rmsprop.zip");
  for (const auto& block : network->blocks())
    if (block.kind == BlockKind::Statistics) block.values.data<float>()[block.values.elements() / 2] = 0.75f;
  again(*network, directory / "again.zip");
  auto entries = entriesOf(directory / "again.zip");
  CHECK_LACKS(entry(entries, "configuration.json"), "log10stdev");
}

TEST_CASE("networks of muster are written and read again, layer by layer") {
  MultiLayerNetwork images(
      {.seed = 5,
       .updater = Adam{.epsilonHat = true},
       .l2 = 0.01,
       .clipValue = 2,
       .inputShape = {2, 9, 8},
       .layers = {ZeroPad2d{.padding = {1, 0, 0, 1}},
                  Conv2d{.outChannels = 4, .kernel = {3, 2}, .padding = {1, 0}},
                  BatchNorm{.activation = Activation::ReLU},
                  Conv2d{.outChannels = 8, .kernel = {3, 3}, .groups = 4, .bias = false},
                  MaxPool2d{.kernel = {2, 2}}, Upsample2d{.scale = {2, 3}},
                  ConvTranspose2d{.outChannels = 3, .kernel = {2, 2}, .stride = {2, 2}},
                  AveragePool2d{.kernel = {2, 2}}, Dropout{.rate = 0.25},
                  Layer(Dense{.units = 5, .activation = Activation::Tanh}).frozen(),
                  Layer(Dense{.units = 4, .activation = Activation::LeakyReLU}).learningRate(0.5),
                  Output{.classes = 3}}});
  images.init();
  images.setCounters(17, 3);
  const auto read = checkComputesAgain(images, batchOf(filled({1, 2, 9, 8}, 0.5f)));
  CHECK(textOf(read->iteration(), read->epoch()) == "17 3");

  MultiLayerNetwork words(
      {.updater = Nesterovs{.learningRate = StepSchedule{.initial = 0.1, .every = 10}},
       .inputShape = {6},
       .layers = {Embedding{.vocabulary = 7, .features = 3},
                  Conv1d{.outChannels = 4, .kernel = 2, .causal = true}, Dense{.units = 5, .perStep = true},
                  LSTM{.units = 4}, LSTM{.units = 3, .returnSequences = false}, Output{.classes = 2}}});
  words.init();
  checkComputesAgain(words, batchOf(integers({0, 1, 2, 3, 4, 5}, {1, 6})));

  ComputationGraphConfiguration graph{.seed = 9, .updater = Sgd{}, .inputs = {{"left", {4}}, {"right", {3}}}};
  const auto a = graph.add("a", Dense{.units = 4}, {"left"}),
             b = graph.add("b", Dense{.units = 4}, {"right"});
  const auto sum = graph.add("sum", Combine{.activation = Activation::ReLU}, {a, b});
  const auto both = graph.add("both", Merge{}, {sum, a, "right"});
  const auto part = graph.add("part", Subset{.from = 1, .to = 9}, {both});
  graph.addOutput(graph.add("class", Output{.classes = 2}, {part}));
  graph.addOutput(graph.add(
      "number", Output{.classes = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Identity},
      {graph.add("half", Scale{.factor = 0.5}, {sum})}));
  ComputationGraph joined(graph);
  joined.init();
  Batch batch;
  batch.features = {{"left", Tensor::of({1, 2, 3, 4}, {1, 4})}, {"right", Tensor::of({5, 6, 7}, {1, 3})}};
  checkComputesAgain(joined, batch);
}

TEST_CASE("what Deeplearning4j does not have is refused by name, and nothing is written") {
  const TemporaryDirectory directory;
  MultiLayerNetwork network({.updater = Lion{},
                             .clipNorm = 1,
                             .inputShape = {4},
                             .layers = {Dense{.units = 4, .activation = Activation::GELU, .name = "d"},
                                        LayerNorm{.name = "norm"}, Output{.classes = 2, .name = "o"}}});
  network.init();
  CHECK_REFUSED(
      dl4j::save(network, directory / "model.zip"),
      "dl4j::save: Deeplearning4j does not have clipNorm, a norm of all gradients together; layer d (dense): "
      "the activation gelu; the updater lion; layer norm (layernorm): Deeplearning4j has no such layer");
  CHECK(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace muster::test
