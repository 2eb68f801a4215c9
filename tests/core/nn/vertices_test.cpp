#include "muster/core/nn/computation_graph.h"
#include "tests/core/nn/batches.h"
#include "tests/core/nn/checks.h"
#include "tests/support/arrays.h"
#include "tests/support/test.h"

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

/// Three numbers that represent a tensor: sum of cos(i) x[i], x[0], the last.
struct Marks {
  double weighted, first, last;
};

struct Golden {
  std::string name;
  Shape shape;
  Marks y;
  std::vector<Marks> gradients;  ///< of sum of cos(i) y[i] by each input
};

const std::vector<Golden> kGolden{
    {"add",
     {3, 2, 2},
     {4.6400602274, 0.3251486599, -0.7160218391},
     {{12.2867134223, 1.0000000000, -0.5328330200},
      {12.2867134223, 1.0000000000, -0.5328330200},
      {12.2867134223, 1.0000000000, -0.5328330200}}},
    {"addRelu",
     {3, 2, 2},
     {2.1243349096, 0.4253241483, 0.0000000000},
     {{7.0685001006, 1.0000000000, 0.0000000000}, {7.0685001006, 1.0000000000, 0.0000000000}}},
    {"subtract",
     {3, 2, 2},
     {11.0984062969, 1.2576178214, -0.2654340225},
     {{12.2867134255, 1.0000000000, -0.5328330200}, {-12.2867134255, -1.0000000000, 0.5328330200}}},
    {"product",
     {3, 2, 2},
     {-1.3294650618, 0.0350790006, 0.4809783054},
     {{-0.6678844520, 0.0416877130, 0.2830027020},
      {-4.3561540849, -0.0842947670, 0.4003489640},
      {-0.0315609253, -0.3501754880, -0.3088837610}}},
    {"average",
     {3, 2, 2},
     {1.5466867425, 0.1083828866, -0.2386739464},
     {{4.0955711404, 0.3333333330, -0.1776110070},
      {4.0955711404, 0.3333333330, -0.1776110070},
      {4.0955711404, 0.3333333330, -0.1776110070}}},
    {"max",
     {3, 2, 2},
     {0.0419593272, 0.8414709848, 0.8297008624},
     {{4.7684466890, 1.0000000000, 0.0000000000},
      {3.1302313526, 0.0000000000, 0.0000000000},
      {4.3880353816, 0.0000000000, -0.5328330200}}},
    {"maxTanh",
     {3, 2, 2},
     {6.0790741511, 0.6865874070, -0.5649978239},
     {{2.4463131890, 0.5285977330, 0.0000000000}, {5.0146808008, 0.0000000000, -0.3627407100}}},
    {"mergeChannels",
     {9, 2, 2},
     {8.5257476274, 0.8414709848, 0.8297008624},
     {{8.7895067475, 1.0000000000, -0.9923354700},
      {4.5637507495, 0.8438539590, -0.7710802230},
      {-1.0872284776, 0.4241790070, -0.3090227280}}},
    {"mergeWidth",
     {3, 2, 4},
     {10.5725834781, 0.8414709848, -0.6401443395},
     {{3.2193659890, 1.0000000000, 0.5253219890}, {-0.0927398095, -0.4161468370, -0.9923354690}}},
    {"subsetChannels",
     {2, 2, 2},
     {-2.1784910128, -0.9589242747, -0.9055783620},
     {{-2.6562193887, 0.0000000000, -0.7596879130}}},
    {"subsetHeight",
     {3, 1, 2},
     {-0.7594619376, 0.1411200081, -0.9055783620},
     {{-2.1489360283, 0.0000000000, 0.0044256980}}},
    {"reshape",
     {6, 2},
     {-0.5134696027, -0.4161468365, -0.6401443395},
     {{12.2867134232, 1.0000000000, -0.5328330200}}},
    {"scale",
     {3, 2, 2},
     {-15.8774050412, -1.2622064772, 1.3583675430},
     {{-18.4300701394, -1.5000000010, 0.7992495310}}},
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

/// In float32, the marks of 72 numbers at most.
void checkMarks(const Tensor& tensor, const Marks& expected) {
  const auto x = test::toArray(tensor).values;
  double weighted = 0;
  for (std::size_t i = 0; i < x.size(); ++i) weighted += std::cos(static_cast<double>(i)) * x[i];
  const auto near = [](double value) { return doctest::Approx(value).epsilon(2e-6); };
  CHECK(weighted == near(expected.weighted));
  CHECK(x.front() == near(expected.first));
  CHECK(x.back() == near(expected.last));
}

/// Forward and backward, the inputs offered in `layout`.
void checkVertex(const GraphVertex& vertex, const Golden& golden, Layout layout) {
  Context context;
  const ContextScope scope(context);
  const Batch inputs = goldenInputs();
  const Shape example{3, 2, 2};
  ModuleBinding binding{.name = vertex.name};
  for (std::size_t i = 0; i < vertex.inputs.size(); ++i)
    binding.inputs.push_back({example.prepend(2), layout});
  REQUIRE(vertex.layer.module().outputShape(std::vector(vertex.inputs.size(), example)) == golden.shape);
  const auto program = vertex.layer.module().compile(binding, context);
  const auto in = [](Layout wanted, const Tensor& rows) {
    return test::toTensor(test::toArray(rows), wanted);
  };
  std::vector<Tensor> x, gradX;
  for (const auto& name : vertex.inputs) {
    for (const auto& feature : inputs.features)
      if (feature.name == name) x.push_back(in(program->inputLayout(), feature.value));
    gradX.push_back(test::nanTensor(example.prepend(2), program->inputLayout()));
  }
  const Shape output = golden.shape.prepend(2);
  Tensor y =
      program->aliasesInput() ? x.front().reshape(output) : test::nanTensor(output, program->outputLayout());
  Tensor gradY = in(program->outputLayout(), filled(output, [](double i) { return std::cos(i - 1); }));
  if (!program->aliasesInput()) {
    program->forwardAll(x, y, {});
    std::vector<Tensor> wanted = program->passesGradient() ? std::vector<Tensor>(x.size()) : gradX;
    program->backwardAll(x, y, gradY, wanted, {});
  }
  checkMarks(y, golden.y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(i);
    const bool handedOn = program->aliasesInput() || program->passesGradient();
    checkMarks(handedOn ? gradY : gradX[i], golden.gradients[i]);
  }
}

/// Checks a network with a convolution for each input, the vertex, and a classifier.
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
    CAPTURE(vertex.module().type());
    CHECK(test::checkGradientsOf(model, test::classBatch({2, 6, 5}, examples, 3, 5)) > 50);
  }
}

std::string problemOf(const Layer& vertex, const std::vector<Shape>& inputs) {
  return test::thrown<InvalidArgument>([&] {
    vertex.module().validate();
    static_cast<void>(vertex.module().outputShape(inputs));
  });
}

}  // namespace

TEST_CASE(
    "every vertex by itself, in all layouts, agrees with values from a float64 script, gradients included") {
  const auto graph = everyVertex();
  for (std::size_t v = 0; v < kGolden.size(); ++v)
    for (const auto& [layout, word] : EnumNames<Layout>::kNames) {
      CAPTURE(kGolden[v].name);
      CAPTURE(word);
      REQUIRE(graph.vertices[v].name == kGolden[v].name);
      checkVertex(graph.vertices[v], kGolden[v], layout);
    }
}

TEST_CASE("every vertex passes the gradient check") {
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

TEST_CASE("inputs that do not fit are refused with their shapes") {
  CHECK(problemOf(Combine{}, {{3, 2, 2}, {3, 2, 4}}) ==
        "combine: expected inputs of one shape, got [3, 2, 2] and [3, 2, 4]");
  CHECK(problemOf(Combine{.combination = Combination::Subtract}, {{3}, {3}, {3}}) ==
        "combine: subtract takes two inputs, got 3");
  CHECK(problemOf(Combine{.activation = Activation::Softmax}, {{3}}) ==
        "combine: activation cannot be softmax, which needs whole rows; add an ActivationLayer after it");
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
  CHECK(problemOf(Scale{.factor = test::kInfinity}, {{3}}) == "scale: the factor must be finite, got inf");
}

TEST_CASE("an output is kept for the backward pass only if the activation's derivative reads it") {
  Context context;
  const auto keepsOutput = [&](Activation activation) {
    const Layer vertex = Combine{.activation = activation};
    const auto program =
        vertex.module().compile({.name = "sum", .inputs = {{.shape = {2, 3}}, {.shape = {2, 3}}}}, context);
    return program->backwardReads().output;
  };
  CHECK(keepsOutput(Activation::Tanh));
  CHECK_FALSE(keepsOutput(Activation::Identity));
  CHECK_FALSE(keepsOutput(Activation::GELU));
  checkGradient(Combine{.activation = Activation::GELU}, 2);
}
