#include "muster/core/device/math_mode.h"
#include "muster/core/nn/computation_graph.h"
#include "tests/core/nn/elsewhere.h"
#include "tests/core/nn/test.h"
#include "tests/support/all_updaters.h"
#include "tests/support/allocations.h"
#include "tests/support/list_iterator.h"
#include "tests/support/skip.h"

// Our code allocates nothing in a training step: memory is planned at the first batch of each size. oneDNN's
// own allocations are not counted.

using namespace muster;

namespace {

/// Allocations in steps of two batches, once both have been trained.
long allocationsOfSteps(Network& model, const Batch& full, const Batch& rest) {
  model.step(full);
  model.step(rest);
  return test::allocationsIn([&] {
    for (const auto* batch : {&full, &rest, &full}) model.step(*batch);
  });
}

/// Allocations in one step, once the batch size is known.
long allocationsInAStep(std::vector<Layer> layers, Updater updater, const Shape& input, int threads,
                        MathMode mathMode = MathMode::Float32) {
  Context context(Device::cpu(), {.threads = threads, .mathMode = mathMode});
  MultiLayerNetwork model({.seed = 1,
                           .updater = std::move(updater),
                           .l1 = 1e-5,
                           .l2 = 1e-4,
                           .clipNorm = 5,
                           .clipValue = 1,
                           .inputShape = input,
                           .layers = std::move(layers)},
                          context);
  const auto full = test::classBatch(input, 32, 4, 3), rest = test::classBatch(input, 5, 4, 3);
  test::ListIterator data({full});
  model.fitNormalisation(data);
  return allocationsOfSteps(model, full, rest);
}

}  // namespace

TEST_CASE("a training step allocates nothing, with every layer and updater") {
  const std::vector<Layer> layers{
      Normalise{},
      Conv2d{.outChannels = 6, .kernel = {3, 3}, .activation = Activation::GELU},
      BatchNorm{.activation = Activation::ReLU},
      MaxPool2d{},
      Conv2d{.outChannels = 5, .kernel = {2, 2}, .stride = {2, 2}, .activation = Activation::ReLU},
      AveragePool2d{},
      ActivationLayer{.activation = Activation::Sigmoid},
      Dropout{.rate = 0.3},
      Dense{.units = 12, .activation = Activation::Tanh},
      BatchNorm{},
      LayerNorm{},
      Output{.classes = 4}};
  for (const auto& updater : test::allUpdaters())
    for (const int threads : {1, 2}) {
      INFO("updater.type() ", updater.type(), ", threads ", threads);
      CHECK(allocationsInAStep(layers, Updater::named(updater.type(), 0.01), {2, 14, 14}, threads) == 0);
    }
}

/// On one thread, because oneDNN's conversions to bf16 allocate on its own threads, which the count includes.
TEST_CASE("a training step allocates nothing in bf16") {
  if (const auto why = whyNoMathMode(Device::cpu(), MathMode::BFloat16); !why.empty())
    return test::skip("bf16: " + why);
  const std::vector<Layer> layers{Conv2d{.outChannels = 20, .kernel = {5, 5}}, MaxPool2d{},
                                  Conv2d{.outChannels = 32, .kernel = {3, 3}, .padding = {1, 1}},
                                  Dense{.units = 12, .activation = Activation::ReLU}, Output{.classes = 4}};
  CHECK(allocationsInAStep(layers, Updater::named("nesterovs", 0.01), {1, 14, 14}, 1, MathMode::BFloat16) ==
        0);
}

TEST_CASE("a training step allocates nothing with transposed and sequence convolutions, and resized images") {
  // No grouped convolution: for some, oneDNN allocates on its own threads, which the count includes.
  const std::vector<Layer> images{
      Conv2d{.outChannels = 6, .kernel = {3, 3}},
      ConvTranspose2d{.outChannels = 3, .kernel = {2, 2}, .stride = {2, 2}, .activation = Activation::ReLU},
      Upsample2d{.mode = UpsampleMode::Bilinear}, ZeroPad2d{.padding = {1, 0, 0, 2}}, Output{.classes = 4}};
  const std::vector<Layer> sequences{Conv1d{.outChannels = 6, .kernel = 3, .padding = 1},
                                     Conv1d{.outChannels = 5, .kernel = 3, .causal = true},
                                     Output{.classes = 4}};
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    CHECK(allocationsInAStep(images, Updater::named("sgd", 0.01), {4, 6, 6}, threads) == 0);
    CHECK(allocationsInAStep(sequences, Updater::named("sgd", 0.01), {9, 4}, threads) == 0);
  }
}

TEST_CASE("a training step over masked sequences allocates nothing, also on a device of the layers' own") {
  const LSTM lstm{.units = 8};
  const SelfAttention attention{.heads = 2, .causal = true};
  const Output output{.classes = 4, .perStep = true};
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    Context context(Device::cpu(), {.threads = threads}), other;
    const auto check = [&](std::vector<Layer> layers, Batch batch) {
      MultiLayerNetwork model({.seed = 1, .updater = Adam{}, .layers = std::move(layers)}, context);
      model.prepare(batch);
      CHECK(allocationsOfSteps(model, batch, batch) == 0);
    };
    Batch batch = test::sequenceBatch({6, 3}, 5, 4, 3, true);
    check({test::Elsewhere{lstm, &other}, test::Elsewhere{attention, &other}, output}, batch);
    batch.features[0].value = Tensor::zeros({5, 6}, DType::Int64);
    const Embedding embedding{.vocabulary = 5, .features = 6};
    check({embedding, lstm, attention, GRU{.units = 5}, Dropout{.rate = 0.2}, output}, batch);
    batch.labels = test::classBatch({1}, 5, 4, 3).labels;
    check({embedding, lstm, MeanOverTime{}, Output{.classes = 4}}, batch);
  }
}

TEST_CASE("a training step of a graph allocates nothing, with every vertex and several outputs") {
  const Shape image{3, 8, 8};
  Batch full = test::classBatch(image, 32, 4, 3);
  full.features.front().name = "image";
  full.labels.front().name = "digit";
  const Batch other = test::targetBatch({5}, 32, 2, 4);
  full.features.push_back({"context", other.features.front().value});
  full.labels.push_back({"size", other.labels.front().value});
  const Batch rest = test::partOf(full, 0, 5);
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    Context context(Device::cpu(), {.threads = threads});
    ComputationGraphConfiguration graph{
        .seed = 1,
        .updater = Adam{.learningRate = 0.01},
        .l2 = 1e-4,
        .clipNorm = 5,
        .inputs = {{.name = "image", .shape = image}, {.name = "context", .shape = {5}}}};
    // One convolution without padding: for others, oneDNN allocates on its own threads.
    graph.add("stem", Conv2d{.outChannels = 6, .kernel = {3, 3}}, {"image"});
    std::string last = graph.add("active", ActivationLayer{.activation = Activation::Sigmoid}, {"stem"});
    for (const auto& [combination, name] : EnumNames<Combination>::kNames)
      last = graph.add(std::string(name), Combine{.combination = combination, .activation = Activation::Tanh},
                       {last, "stem"});
    graph.add("joined", Merge{}, {last, "stem"});
    graph.add("cut", Subset{.from = 1, .to = 5}, {"joined"});
    graph.add("scaled", Scale{.factor = 0.5}, {"cut"});
    graph.add("shaped", Reshape{.shape = {144}}, {"scaled"});
    graph.add("known", Dense{.units = 6, .activation = Activation::Tanh}, {"context"});
    graph.add("both", Merge{}, {"shaped", "known"});
    graph.addOutput(graph.add("digit", Output{.classes = 4}, {"both"}));
    graph.addOutput(
        graph.add("size",
                  Output{.classes = 2, .loss = Loss::MeanSquaredError, .activation = Activation::Identity},
                  {"both"}),
        0.3);
    ComputationGraph model(graph, context);
    model.init();
    CHECK(allocationsOfSteps(model, full, rest) == 0);
  }
}

TEST_CASE("a training step allocates nothing with layers on a device of their own") {
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    Context other(Device::cpu(), {.threads = threads});
    using test::Elsewhere;
    CHECK(allocationsInAStep({Elsewhere{Conv2d{.outChannels = 6, .kernel = {3, 3}}, &other},
                              Elsewhere{BatchNorm{.activation = Activation::ReLU}, &other},
                              Elsewhere{Dropout{.rate = 0.3}, &other}, Elsewhere{Dense{.units = 7}, &other},
                              Output{.classes = 4}},
                             Updater::named("adam", 0.01), {2, 8, 8}, threads) == 0);
  }
}

TEST_CASE("steps in slices keep the memory of a recycled batch, in any order of batch sizes") {
  MultiLayerNetwork model({.updater = Sgd{.learningRate = 0.1},
                           .accumulate = 2,
                           .inputShape = {6},
                           .layers = {Dense{.units = 4}, Output{.classes = 3}}});
  model.init();
  Batch batch;
  const auto step = [&](std::int64_t examples) {
    const auto source = test::classBatch({6}, examples, 3, 5);
    return test::allocationsIn([&] {
      copy(source.features[0].value, Batch::ensureOnly(batch.features, "features", {examples, 6}));
      copy(source.labels[0].value, Batch::ensureOnly(batch.labels, "labels", {examples}, DType::Int64));
      model.step(batch);
    });
  };
  for (const std::int64_t examples : {8, 3}) step(examples);
  for (const std::int64_t examples : {8, 3, 8}) CHECK(step(examples) == 0);
}

TEST_CASE("the test's counter detects an allocation") {
  CHECK(test::allocationsIn([] { ::operator delete(::operator new(1)); }) == 1);
}
