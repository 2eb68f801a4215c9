#include "muster/core/nn/computation_graph.h"
#include "tests/core/nn/test.h"

using namespace muster;

namespace {

template <typename F>
Tensor filled(const Shape& shape, F value) {
  Tensor tensor = Tensor::empty(shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data<float>()[i] = static_cast<float>(value(static_cast<double>(i + 1)));
  return tensor;
}

/// Three numbers that represent a tensor: sum of cos(i) x[i], x[0], the last.
struct Marks {
  double weighted, first, last;
};

struct Golden {
  std::string_view name;
  Shape shape;
  Marks y;
  std::vector<Marks> gradients;  ///< of sum of cos(i) y[i] by each input
};

#include "tests/core/nn/vertices_golden.inc"

const Shape kExample{3, 2, 2};

/// The input a, b or c of vertices_golden.py.
Tensor inputNamed(char name) {
  return filled(kExample.prepend(2), [name](double i) {
    const double a = std::sin(i), b = std::cos(2 * i);
    return name == 'a' ? a : name == 'b' ? b : a * b + 0.25;
  });
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

/// Forward and backward of a vertex that reads these inputs, offered in `layout`.
void checkVertex(const Layer& vertex, std::string_view reads, const Golden& golden, Layout layout) {
  INFO(golden.name, ", ", nameOf(layout));
  Context context;
  const ContextScope scope(context);
  REQUIRE(vertex.module().outputShape(std::vector(reads.size(), kExample)) == golden.shape);
  ModuleBinding binding{.name = "vertex"};
  binding.inputs.resize(reads.size(), {kExample.prepend(2), layout});
  const auto program = vertex.module().compile(binding, context);
  const auto in = [](Layout wanted, const Tensor& rows) {
    return test::toTensor(test::toArray(rows), wanted);
  };
  std::vector<Tensor> x, gradX;
  for (const char name : reads) {
    x.push_back(in(program->inputLayout(), inputNamed(name)));
    gradX.push_back(test::nanTensor(kExample.prepend(2), program->inputLayout()));
  }
  const Shape output = golden.shape.prepend(2);
  const bool aliases = program->aliasesInput();
  Tensor y = aliases ? x.front().reshape(output) : test::nanTensor(output, program->outputLayout());
  Tensor gradY = in(program->outputLayout(), filled(output, [](double i) { return std::cos(i - 1); }));
  if (!aliases) {
    program->forwardAll(x, y, {});
    std::vector<Tensor> wanted = program->passesGradient() ? std::vector<Tensor>(x.size()) : gradX;
    program->backwardAll(x, y, gradY, wanted, {});
  }
  checkMarks(y, golden.y);
  for (std::size_t i = 0; i < x.size(); ++i)
    checkMarks(aliases || program->passesGradient() ? gradY : gradX[i], golden.gradients[i]);
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
  constexpr auto kRelu = Activation::ReLU, kTanh = Activation::Tanh;
  const std::vector<std::pair<Layer, std::string_view>> vertices{
      {Combine{.combination = Combination::Add}, "abc"},
      {Combine{.combination = Combination::Add, .activation = kRelu}, "ab"},
      {Combine{.combination = Combination::Subtract}, "ab"},
      {Combine{.combination = Combination::Product}, "abc"},
      {Combine{.combination = Combination::Average}, "abc"},
      {Combine{.combination = Combination::Max}, "abc"},
      {Combine{.combination = Combination::Max, .activation = kTanh}, "ab"},
      {Merge{}, "abc"},
      {Merge{.axis = 2}, "ab"},
      {Subset{.from = 1, .to = 3}, "a"},
      {Subset{.from = 1, .to = 2, .axis = 1}, "a"},
      {Reshape{.shape = {6, 2}}, "b"},
      {Scale{.factor = -1.5}, "a"}};
  REQUIRE(vertices.size() == kGolden.size());
  for (std::size_t v = 0; v < vertices.size(); ++v)
    for (const auto& [layout, word] : EnumNames<Layout>::kNames)
      checkVertex(vertices[v].first, vertices[v].second, kGolden[v], layout);
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
  CHECK(problemOf(Merge{}, {{4, 8, 7}, {224}}) ==
        "merge: inputs must have as many dimensions, got [4, 8, 7] and [224]; a Reshape or Flatten before it "
        "gives them");
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
}
