#include "muster/core/nn/step/network_batch.h"

#include "muster/core/nn/layers.h"
#include "muster/core/nn/step/network_loss.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using namespace detail;

NamedTensor named(std::string name, const Shape& shape, DType dtype = DType::Float32) {
  return {std::move(name), Tensor::zeros(shape, dtype)};
}

/// A network of one layer for each output, which all read the input.
NetworkPlan planOf(const Shape& input, const std::vector<Layer>& layers) {
  NetworkLayout layout({{.name = "x", .shape = input}});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string name = fmt::format("out{}", i);
    layout.addOutput(name, layout.add(name, layers[i], {0}));
  }
  return layout.take();
}

TEST_CASE("with one input the first features are read, with several those with its name") {
  const std::vector<NamedTensor> tensors{named("a", {1}), named("b", {2})};
  CHECK(tensorFor(tensors, "features", "b", true).shape() == Shape{1});
  CHECK(tensorFor(tensors, "features", "b", false).shape() == Shape{2});
  CHECK(namedFor(tensors, "features", "a", false).name == "a");
  CHECK_REFUSED(tensorFor(tensors, "labels", "c", false),
                "network: the batch has no labels called c; it has a, b");
  CHECK_REFUSED(tensorFor({}, "labels", "c", true), "network: the batch has no labels");
}

TEST_CASE("open shapes are those of a batch's examples; stated ones stay") {
  const std::vector<NetworkInput> inputs{{.name = "open"}, {.name = "stated", .shape = {5}}};
  Batch batch;
  batch.features = {named("open", {2, 3, 4}), named("stated", {2, 7})};
  CHECK(shapesFrom(inputs, batch) == std::vector<Shape>{{3, 4}, {5}});
  struct Row {
    Shape shape;
    const char* text;
  };
  for (const Row& row :
       {Row{{2},
            "network: the first batch gives the shape of open, and has to be [N, ...], got float32 [2] on "
            "cpu"},
        Row{{0, 3},
            "network: the first batch has no examples to take the shape of open from, it is float32 [0, 3] "
            "on cpu"},
        Row{{2, 0},
            "network: the first batch gives the shape of open, but its examples are empty: float32 [2, "
            "0] on cpu"}}) {
    batch.features[0] = named("open", row.shape);
    CHECK_REFUSED(shapesFrom(inputs, batch), row.text);
  }
}

TEST_CASE("open shapes are taken from the rows that a batch names, too") {
  Batch batch;
  batch.features = {named("x", {2}, DType::Int64)};
  batch.features[0].source = std::make_shared<ResidentTensor>(Tensor::zeros({9, 3, 4}));
  const std::array inputs{NetworkInput{.name = "x"}};
  CHECK(shapesFrom(inputs, batch) == std::vector<Shape>{{3, 4}});
}

TEST_CASE("an example has zeros of each input's shape and type, and a size where the input leaves it open") {
  CHECK(exampleFor({}).features.empty());
  const Batch numbers = exampleFor(planOf({0, 3}, {LSTM{.units = 2}}));
  REQUIRE(numbers.features.size() == 1);
  CHECK(numbers.features[0].value.shape() == Shape{1, kExampleSize, 3});
  CHECK((numbers.features[0].value.dtype() == DType::Float32));
  const Batch indices = exampleFor(planOf({7}, {Embedding{.vocabulary = 5, .features = 2}}));
  CHECK(indices.features[0].name == "x");
  CHECK(indices.features[0].value.shape() == Shape{1, 7});
  CHECK((indices.features[0].value.dtype() == DType::Int64));
}

TEST_CASE("a network's task follows its first output's activation, loss and width") {
  struct Row {
    Layer layer;
    Task task;
  };
  const Dense hidden{.units = 3};
  CHECK(taskOf({}) == Task::Classification);
  for (const Row& row :
       {Row{hidden, Task::Classification}, Row{Output{.classes = 3}, Task::Classification},
        Row{Output{.classes = 1, .loss = Loss::BinaryCrossEntropy}, Task::Classification},
        Row{Output{.classes = 2, .loss = Loss::BinaryCrossEntropy}, Task::Labels},
        Row{Output{.units = 2, .loss = Loss::MeanSquaredError}, Task::Regression},
        Row{Output{.classes = 2, .loss = Loss::MeanSquaredError, .activation = Activation::Softmax},
            Task::Classification}})
    CHECK(taskOf(planOf({4}, {row.layer, Output{.units = 1, .loss = Loss::MeanSquaredError}})) == row.task);
}

TEST_CASE("features must have at least one example of the input's shape") {
  const NetworkPlan fixed = planOf({2, 3}, {LSTM{.units = 2}}), open = planOf({0, 3}, {LSTM{.units = 2}});
  CHECK_NOTHROW(requireInput(fixed, 0, Tensor::zeros({1, 2, 3})));
  CHECK_NOTHROW(requireInput(open, 0, Tensor::zeros({1, 9, 3})));
  CHECK_REFUSED(
      requireInput(fixed, 0, Tensor::zeros({0, 2, 3})),
      "network: expected x [2, 3] with at least one example before it, got float32 [0, 2, 3] on cpu");
  CHECK_REFUSED(
      requireInput(fixed, 0, Tensor::zeros({1, 4, 3})),
      "network: expected x [2, 3] with at least one example before it, got float32 [1, 4, 3] on cpu; a "
      "network's sequences keep their length: cut or pad to 2 steps and mask the padding, or state 0 "
      "for any length");
  CHECK_REFUSED(
      requireInput(fixed, 0, Tensor::zeros({1, 1, 3})),
      "network: expected x [2, 3] with at least one example before it, got float32 [1, 1, 3] on cpu; a "
      "network's sequences keep their length: pad to 2 steps and mask the padding, or state 0 for any "
      "length");
  for (const Shape& shape : {Shape{1, 0, 3}, Shape{1, 9, 2}, Shape{1, 9}, Shape{0, 9, 3}})
    CHECK_THROWS_AS(requireInput(open, 0, Tensor::zeros(shape)), InvalidArgument);
}

TEST_CASE("the sizes of a batch are its examples and what its input leaves open") {
  const NetworkPlan fixed = planOf({2, 3}, {LSTM{.units = 2}}), open = planOf({0, 3}, {LSTM{.units = 2}});
  const Tensor features = Tensor::zeros({5, 2, 3}), longer = Tensor::zeros({4, 9, 3});
  const std::array<const Tensor*, 1> one{&features}, other{&longer};
  CHECK(sizeOf(fixed, one) == BatchSize{.examples = 5});
  CHECK(sizeOf(open, one) == BatchSize{.examples = 5, .open = {2, 0}});
  CHECK(sizeOf(open, other) == BatchSize{.examples = 4, .open = {9, 0}});
}

TEST_CASE("two inputs that leave sizes open must have the same ones") {
  const NetworkInput images{.name = "images", .shape = {3, 64, 64}, .stated = {3, 0, 0}};
  BatchSize size;
  addOpenSizes(images, {2, 3, 8, 9}, size);
  CHECK(size.open == OpenSizes{8, 9});
  CHECK_NOTHROW(addOpenSizes(images, {7, 3, 8, 9}, size));
  CHECK_REFUSED(
      addOpenSizes(images, {2, 3, 9, 8}, size),
      "network: images is [2, 3, 9, 8], but another input has other sizes where both leave them open; "
      "state one");
  CHECK_REFUSED(addOpenSizes(images, {2, 3}, size), "network: images has the shape [3, 0, 0], got [2, 3]");
}

TEST_CASE("masks that nothing reads are refused") {
  std::vector<const Tensor*> features;
  const NetworkPlan one = planOf({2}, {Output{.classes = 3}}),
                    two = planOf({2}, {Output{.classes = 3}, Output{.classes = 3}});
  const auto refusal = [&](const NetworkPlan& plan, const std::vector<const char*>& masks) {
    Batch batch;
    batch.features = {named("x", {4, 2})};
    for (const char* mask : masks) batch.masks.push_back(named(mask, {4}));
    return test::thrown<InvalidArgument>([&] { findFeatures(plan, batch, features); });
  };
  CHECK(refusal(one, {"weights"}).empty());
  CHECK(refusal(one, {"features", "weights"}).empty());
  CHECK(refusal(one, {"a", "b"}) ==
        "network: the batch has masks called a and b; besides features one is read");
  CHECK(refusal(one, {"Feature"}) ==
        "network: the batch has a mask called Feature; the one of time steps is called features");
  CHECK(refusal(two, {"features", "out1"}).empty());
  CHECK(refusal(two, {"weights"}) ==
        "network: the batch has a mask called weights; the masks that are read are features, out0, out1");
}

}  // namespace
}  // namespace muster
