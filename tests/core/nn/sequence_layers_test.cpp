#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/nn/test.h"
#include "tests/support/network_probe.h"

// Layers over time, with and without masks: gradients, padding, files, allocations, errors.

using namespace muster;

namespace {

constexpr std::int64_t kSteps = 6, kVocabulary = 5, kStepClasses = 4;
const Shape kInput{kSteps, 3};

using test::checkGradientsOf;

/// Checks layers after one that needs their input gradient, with a loss at each step, or one per sequence;
/// the mask has steps either way.
void check(const std::vector<Layer>& middle, bool perStep) {
  std::vector<Layer> layers{Dense{.units = 4, .activation = Activation::Tanh, .perStep = true}};
  layers.insert(layers.end(), middle.begin(), middle.end());
  layers.push_back(Output{.classes = kStepClasses, .perStep = perStep});
  for (const bool masked : {false, true}) {
    Batch batch = test::sequenceBatch(kInput, 5, kStepClasses, 3, masked);
    if (!perStep) batch.labels = test::classBatch(kInput, 5, kStepClasses, 3).labels;
    checkGradientsOf(layers, kInput, batch);
  }
}

/// A batch of indices.
Batch indexBatch(std::int64_t examples, bool masked) {
  Batch batch = test::sequenceBatch({kSteps}, examples, kStepClasses, 9, masked);
  Tensor indices = Tensor::empty({examples, kSteps}, DType::Int64);
  for (std::int64_t i = 0; i < indices.elements(); ++i)
    indices.data<std::int64_t>()[i] = (3 * i + i / 4) % kVocabulary;
  batch.features.front().value = indices;
  return batch;
}

/// Every layer over time, from indices to a class at each step.
std::vector<Layer> everything() {
  return {Embedding{.vocabulary = kVocabulary, .features = 6},
          LSTM{.units = 8},
          SelfAttention{.heads = 2, .causal = true},
          GRU{.units = 5},
          Dropout{.rate = 0.2},
          Output{.classes = kStepClasses, .perStep = true}};
}

}  // namespace

TEST_CASE("gradient check: recurrent layers, attention, and reductions of sequences, masked or not") {
  check({LSTM{.units = 5}}, /*perStep=*/true);
  check({GRU{.units = 5}}, /*perStep=*/true);
  check({LSTM{.units = 3}, GRU{.units = 4}}, /*perStep=*/true);
  check({SelfAttention{}}, /*perStep=*/true);
  check({SelfAttention{.heads = 2, .causal = true}}, /*perStep=*/true);
  check({LSTM{.units = 5, .returnSequences = false}}, /*perStep=*/false);
  check({GRU{.units = 5, .returnSequences = false}}, /*perStep=*/false);
  check({GRU{.units = 5}, LastStep{}}, /*perStep=*/false);
  check({LSTM{.units = 5}, MeanOverTime{}}, /*perStep=*/false);
}

TEST_CASE("gradient check: an embedding, and all sequence layers at once") {
  for (const bool masked : {false, true}) {
    checkGradientsOf({Embedding{.vocabulary = kVocabulary, .features = 3},
                      Output{.classes = kStepClasses, .perStep = true}},
                     {kSteps}, indexBatch(4, masked));
    checkGradientsOf(everything(), {kSteps}, indexBatch(4, masked));
  }
}

TEST_CASE("the values of padding change neither outputs, score nor gradients") {
  const std::vector<std::vector<Layer>> fronts{{LSTM{.units = 4}},
                                               {GRU{.units = 4}},
                                               {SelfAttention{.heads = 3}},
                                               {LSTM{.units = 4}, SelfAttention{}}};
  for (const auto& front : fronts) {
    auto layers = front;
    layers.push_back(Output{.classes = kStepClasses, .perStep = true});
    Batch batch = test::sequenceBatch(kInput, 5, kStepClasses, 3, true);
    MultiLayerNetwork model({.seed = 7, .inputShape = kInput, .layers = layers});
    model.init();
    const double score = model.gradient(batch).wait().score;
    const Tensor gradient = cloneTensor(model.block(BlockKind::Gradients).values);
    const Tensor& mask = batch.masks.front().value;
    for (std::int64_t i = 0; i < mask.elements(); ++i)
      if (mask.data<float>()[i] == 0) {
        std::fill_n(batch.features.front().value.data<float>() + 3 * i, 3, test::kNan);
        batch.labels.front().value.data<std::int64_t>()[i] = -1;
      }
    const auto step = model.gradient(batch).wait();
    CHECK(step.score == score);
    CHECK(step.weight == std::ranges::count(mask.span<float>(), 1.0f));
    CHECK(test::sameBits(model.block(BlockKind::Gradients).values, gradient));
  }
}

TEST_CASE("an LSTM's forget gate starts with its bias option") {
  MultiLayerNetwork model(
      {.seed = 1, .inputShape = kInput, .layers = {LSTM{.units = 2, .forgetBias = 1.5, .name = "l"}}});
  model.init();
  const Tensor bias = model.block(BlockKind::Parameters).segment("l.bias");
  CHECK(test::maxError(bias, test::Array({8}, {0, 0, 1.5, 1.5, 0, 0, 0, 0})) == 0);
}

TEST_CASE("after a first batch of empty sequences, which is refused, the next one gives the shape") {
  MultiLayerNetwork model({.seed = 3, .layers = {LSTM{.units = 4}, Output{.classes = 2, .perStep = true}}});
  CHECK_THROWS_AS(model.prepare(test::batchOf(Tensor::zeros({2, 0, 3}))), InvalidArgument);
  model.prepare(test::batchOf(Tensor::zeros({2, 5, 3})));
  CHECK(model.configuration().inputShape == Shape{5, 3});
}

TEST_CASE("attention with and without a mask in turn gives the bits of each alone") {
  const auto gradientOf = [](std::initializer_list<bool> masked) {
    MultiLayerNetwork model(
        {.seed = 7,
         .inputShape = kInput,
         .layers = {Dense{.units = 4, .activation = Activation::Tanh, .perStep = true},
                    SelfAttention{.heads = 2}, Output{.classes = kStepClasses, .perStep = true}}});
    model.init();
    for (const bool mask : masked) model.gradient(test::sequenceBatch(kInput, 5, kStepClasses, 3, mask));
    return cloneTensor(model.block(BlockKind::Gradients).values);
  };
  CHECK(test::sameBits(gradientOf({true, false}), gradientOf({false})));
  CHECK(test::sameBits(gradientOf({false, true}), gradientOf({true})));
  CHECK_FALSE(test::sameBits(gradientOf({false}), gradientOf({true})));
}

TEST_CASE("invalid options of sequence layers are refused with names and shapes") {
  const auto named = [&](std::vector<Layer> layers, const Shape& input, const char* part) {
    const auto make = [&] { MultiLayerNetwork({.inputShape = input, .layers = std::move(layers)}).init(); };
    CHECK_CONTAINS(test::thrown<InvalidArgument>(make), part);
  };
  named({GRU{.units = 4}}, {7}, "gru: expected a sequence [T, F] of at least one step, got [7]");
  named({SelfAttention{.heads = 2}}, {4, 3}, "selfattention: 2 heads do not divide the features of [4, 3]");
  named({LastStep{}}, {4}, "laststep: expected a sequence");
  named({MeanOverTime{}}, {4}, "meanovertime: expected a sequence");
  named({Dense{.units = 2, .perStep = true}}, {4}, "dense: with perStep it expects a sequence [T, F]");
  named({LSTM{}}, kInput, "lstm: units must be at least 1, got 0");
  named({GRU{}}, kInput, "gru: units must be at least 1, got 0");
  named({Embedding{.features = 2}}, {4}, "embedding: vocabulary must be at least 1, got 0");
  named({SelfAttention{.heads = 0}}, kInput, "selfattention: heads must be at least 1, got 0");

  MultiLayerNetwork model({.inputShape = {kSteps}, .layers = everything()});
  model.init();
  Batch batch = indexBatch(3, false);
  batch.features.front().value.data<std::int64_t>()[kSteps + 2] = 5;
  CHECK_REFUSED(model.step(batch),
                "embedding: the index of example 1 at position 2 is 5, but the vocabulary is 0 to 4");
  batch = indexBatch(3, true);
  batch.masks.front().value = Tensor::zeros({3, kSteps + 1});
  CHECK_CONTAINS(test::thrown<InvalidArgument>([&] { model.step(batch); }), "mask is float32 [3, 7] on cpu");
}

TEST_CASE("masks, labels and sequence lengths that do not fit are refused, also by enqueued steps") {
  for (const bool enqueued : {false, true}) {
    MultiLayerNetwork model({.inputShape = kInput,
                             .layers = {LSTM{.units = 3}, Output{.classes = kStepClasses, .perStep = true}}});
    model.init();
    test::setEnqueuedSteps(model, enqueued);
    const auto problem = [&](const Batch& batch) {
      return test::thrown<InvalidArgument>([&] { model.step(batch).wait(); });
    };
    Batch batch = test::sequenceBatch(kInput, 2, kStepClasses, 3, true);
    CHECK(problem(batch) == "");
    batch.masks = {{"weights", Tensor::zeros({2})}};
    CHECK(problem(batch) ==
          "network: output output takes a mask float32 [2, 6], a weight for each step, but its mask, called "
          "weights, is float32 [2] on cpu");
    batch.masks = {{"weights", Tensor::of({1, 1, 1, 1, 1, 1, 1, -1, 1, 1, 1, 1}, {2, kSteps})}};
    CHECK(problem(batch) ==
          "batch: the mask weights of example 1, step 1 is -1; it must be finite and at least 0");
    batch.masks.clear();
    batch.labels = {{"y", Tensor::zeros({2}, DType::Int64)}};
    CHECK(problem(batch) ==
          "network: output output takes classes int64 [2, 6] or float32 [2, 6, 4], but its labels, called y, "
          "are int64 [2] on cpu");
    const auto refusal = problem(test::sequenceBatch({4, 3}, 2, kStepClasses, 3, false));
    CHECK(refusal.starts_with("network: expected features [6, 3] with at least one example before it"));
  }
  MultiLayerNetwork model(
      {.inputShape = kInput, .layers = {LSTM{.units = 3}, Output{.classes = kStepClasses}}});
  model.init();
  Batch batch = test::classBatch(kInput, 2, kStepClasses, 3);
  batch.masks = {{"steps", Tensor::zeros({2, kSteps})}};
  CHECK_REFUSED(model.step(batch),
                "network: output output takes a mask float32 [2], a weight for each example, but its mask, "
                "called steps, is float32 [2, 6] on cpu; the one of time steps is called features");
}
