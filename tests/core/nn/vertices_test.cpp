#include "muster/core/nn/layers/vertices.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "muster/core/base/error.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/gradient_check.h"
#include "tests/core/nn/batches.h"
#include "tests/support/thrown.h"

using namespace muster;

namespace {

Tensor filled(const Shape& shape, double (*value)(double)) {
  Tensor tensor = Tensor::empty(shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data<float>()[i] = static_cast<float>(value(static_cast<double>(i + 1)));
  return tensor;
}

/// The inputs a, b and c of vertices_golden.py.
Batch goldenInputs() {
  const Shape shape{2, 3, 2, 2};
  Batch batch;
  batch.features.push_back({"a", filled(shape, [](double i) { return std::sin(i); })});
  batch.features.push_back({"b", filled(shape, [](double i) { return std::cos(2 * i); })});
  batch.features.push_back(
      {"c", filled(shape, [](double i) { return std::sin(i) * std::cos(2 * i) + 0.25; })});
  return batch;
}

struct Golden {
  const char* name;
  Shape shape;
  double weighted, first, last;  ///< sum of cos(i) y[i], y[0], the last
};

const std::vector<Golden> kGolden{
    {"add", {3, 2, 2}, 4.640060227406, 0.325148659887, -0.716021839091},
    {"addRelu", {3, 2, 2}, 2.124334909628, 0.425324148261, 0.000000000000},
    {"subtract", {3, 2, 2}, 11.098406296863, 1.257617821355, -0.265434022537},
    {"product", {3, 2, 2}, -1.329465061800, 0.035079000564, 0.480978305445},
    {"average", {3, 2, 2}, 1.546686742469, 0.108382886629, -0.238673946364},
    {"max", {3, 2, 2}, 0.041959327246, 0.841470984808, 0.829700862384},
    {"maxTanh", {3, 2, 2}, 6.079074151079, 0.686587406999, -0.564997823917},
    {"mergeChannels", {9, 2, 2}, 8.525747627424, 0.841470984808, 0.829700862384},
    {"mergeWidth", {3, 2, 4}, 10.572583478119, 0.841470984808, -0.640144339469},
    {"subsetChannels", {2, 2, 2}, -2.178491012774, -0.958924274663, -0.905578362007},
    {"subsetHeight", {3, 1, 2}, -0.759461937602, 0.141120008060, -0.905578362007},
    {"reshape", {6, 2}, -0.513469602719, -0.416146836547, -0.640144339469},
    {"scale", {3, 2, 2}, -15.877405041215, -1.262206477212, 1.358367543010},
};

ComputationGraphConfiguration everyVertex() {
  ComputationGraphConfiguration graph;
  graph.inputs = {{.name = "a", .shape = {3, 2, 2}},
                  {.name = "b", .shape = {3, 2, 2}},
                  {.name = "c", .shape = {3, 2, 2}}};
  const auto combine = [&](const char* name, Combination combination, std::vector<std::string> inputs,
                           Activation activation = Activation::Identity) {
    graph.add(name, Combine{.combination = combination, .activation = activation}, std::move(inputs));
  };
  combine("add", Combination::Add, {"a", "b", "c"});
  combine("addRelu", Combination::Add, {"a", "b"}, Activation::ReLU);
  combine("subtract", Combination::Subtract, {"a", "b"});
  combine("product", Combination::Product, {"a", "b", "c"});
  combine("average", Combination::Average, {"a", "b", "c"});
  combine("max", Combination::Max, {"a", "b", "c"});
  combine("maxTanh", Combination::Max, {"a", "b"}, Activation::Tanh);
  graph.add("mergeChannels", Merge{}, {"a", "b", "c"});
  graph.add("mergeWidth", Merge{.axis = 2}, {"a", "b"});
  graph.add("subsetChannels", Subset{.from = 1, .to = 3}, {"a"});
  graph.add("subsetHeight", Subset{.from = 1, .to = 2, .axis = 1}, {"a"});
  graph.add("reshape", Reshape{.shape = {6, 2}}, {"b"});
  graph.add("scale", Scale{.factor = -1.5}, {"a"});
  for (const auto& golden : kGolden) graph.addOutput(golden.name);
  return graph;
}

/// A convolution for each input, in the vertex's own layout as it comes, the vertex, and a classifier.
void checkGradient(const Layer& vertex, int inputs) {
  for (const std::int64_t examples : {3, 16}) {
    ComputationGraphConfiguration graph{.seed = 7, .inputs = {{.name = "image", .shape = {2, 6, 5}}}};
    std::vector<std::string> reads;
    for (int i = 0; i < inputs; ++i)
      reads.push_back(graph.add(fmt::format("conv{}", i),
                                Conv2d{.outChannels = 3, .kernel = {3, 3}, .activation = Activation::Tanh},
                                {"image"}));
    graph.add("vertex", vertex, reads);
    graph.addOutput(graph.add("output", Output{.classes = 3}, {"vertex"}));
    ComputationGraph model(graph);
    model.init();
    const auto result = checkGradients(model, test::classBatch({2, 6, 5}, examples, 3, 5));
    CAPTURE(vertex.module().type());
    CHECK_MESSAGE(result.passed, result.toString());
    CHECK(result.checked > 50);
  }
}

std::string problemOf(const Layer& vertex, const std::vector<Shape>& inputs) {
  return test::thrown<InvalidArgument>([&] {
    vertex.module().validate();
    static_cast<void>(vertex.module().outputShape(inputs));
  });
}

}  // namespace

TEST_CASE("every vertex against values from a float64 script") {
  ComputationGraph model(everyVertex());
  model.init();
  const auto outputs = model.outputs(goldenInputs());
  REQUIRE(outputs.size() == kGolden.size());
  for (std::size_t o = 0; o < kGolden.size(); ++o) {
    const Golden& golden = kGolden[o];
    CAPTURE(golden.name);
    const Tensor& y = outputs[o];
    REQUIRE(y.shape() == golden.shape.prepend(2));
    double weighted = 0;
    for (std::int64_t i = 0; i < y.elements(); ++i)
      weighted += std::cos(static_cast<double>(i)) * y.data<float>()[i];
    CHECK(weighted == doctest::Approx(golden.weighted).epsilon(1e-5));
    CHECK(y.data<float>()[0] == doctest::Approx(golden.first).epsilon(1e-6));
    CHECK(y.data<float>()[y.elements() - 1] == doctest::Approx(golden.last).epsilon(1e-6));
  }
}

TEST_CASE("every vertex through the gradient check") {
  for (const auto& [combination, name] : EnumNames<Combination>::kNames)
    for (const auto activation : {Activation::Identity, Activation::Sigmoid, Activation::GELU})
      checkGradient(Combine{.combination = combination, .activation = activation},
                    combination == Combination::Subtract ? 2 : 3);
  checkGradient(Combine{.combination = Combination::Add, .activation = Activation::ReLU}, 2);
  checkGradient(Merge{}, 3);
  checkGradient(Merge{.axis = 1}, 2);
  checkGradient(Subset{.from = 1, .to = 2}, 1);
  checkGradient(Subset{.from = 0, .to = 2, .axis = 2}, 1);
  checkGradient(Reshape{.shape = {9, 4}}, 1);
  checkGradient(Scale{.factor = -0.7}, 1);
}

TEST_CASE("of equal inputs the first takes the gradient of a maximum, and NaN comes through") {
  Context context;
  const Tensor a = Tensor::of({1, 2, 3}, {3}), b = Tensor::of({1, 5, std::nanf("")}, {3});
  const Tensor both[] = {a, b};
  Tensor y = Tensor::empty({3}), gradA = Tensor::of({NAN, NAN, NAN}, {3}), gradB = cloneTensor(gradA);
  combine(Combination::Max, both, y, context);
  CHECK(y.data<float>()[0] == 1);
  CHECK(y.data<float>()[1] == 5);
  CHECK(std::isnan(y.data<float>()[2]));
  const Tensor gradY = Tensor::of({7, 8, 9}, {3});
  combineBackward(Combination::Max, both, 0, gradY, gradA, context);
  combineBackward(Combination::Max, both, 1, gradY, gradB, context);
  CHECK(gradA.data<float>()[0] == 7);
  CHECK(gradB.data<float>()[0] == 0);
  CHECK(gradA.data<float>()[1] == 0);
  CHECK(gradB.data<float>()[1] == 8);
}

TEST_CASE("what does not fit is refused with the shapes") {
  CHECK(problemOf(Combine{}, {{3, 2, 2}, {3, 2, 4}}) ==
        "combine: expected inputs of one shape, got [3, 2, 2] and [3, 2, 4]");
  CHECK(problemOf(Combine{.combination = Combination::Subtract}, {{3}, {3}, {3}}) ==
        "combine: subtract takes two inputs, got 3");
  CHECK(problemOf(Combine{.activation = Activation::Softmax}, {{3}}) ==
        "combine: softmax does not go element by element; use an ActivationLayer");
  CHECK(problemOf(Merge{}, {{3, 2, 2}, {3, 2, 4}}) ==
        "merge: inputs joined along dimension 0 must agree in the others, got [3, 2, 2] and [3, 2, 4]");
  CHECK(problemOf(Merge{}, {{4, 5}, {3, 5}}) ==
        "merge: inputs joined along dimension 1 must agree in the others, got [4, 5] and [3, 5]");
  CHECK(problemOf(Merge{.axis = 3}, {{3, 2, 2}}) == "merge: there is no dimension 3 in [3, 2, 2]");
  CHECK(problemOf(Subset{.from = 1, .to = 9}, {{3, 2, 2}}) ==
        "subset: elements 1 to 9 are not in dimension 0 of [3, 2, 2]");
  CHECK(problemOf(Subset{.from = 2, .to = 2}, {{3}}) == "subset: expected 0 <= from < to, got 2 and 2");
  CHECK(problemOf(Reshape{.shape = {5}}, {{3, 2}}) ==
        "reshape: [5] has 5 elements, but its input [3, 2] has 6");
  CHECK(problemOf(Scale{.factor = std::numeric_limits<double>::infinity()}, {{3}}) ==
        "scale: the factor must be finite, got inf");
}
