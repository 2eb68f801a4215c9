#include "muster/core/nn/compile/program_memory.h"
#include "tests/core/nn/test.h"
#include "tests/core/nn/user_layer.h"

namespace muster {
namespace {

/// A gradient's tensor, and a copy of its values at the time of the layer's backward pass.
struct Seen {
  Tensor gradient, then;
};
std::vector<Seen> seen;

struct LateProgram final : test::CopyProgram {
  using CopyProgram::CopyProgram;
  bool readsGradientLate() const override { return true; }
  void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX, const StepInfo& i) override {
    seen.push_back({gradY, cloneTensor(gradY)});
    CopyProgram::backward(x, y, gradY, gradX, i);
  }
};

/// The identity; declares that it may read its output gradient until the backward pass ends.
struct Late : test::UserLayer<LateProgram> {
  static constexpr std::string_view kType = "test-late";
};

TEST_CASE("a gradient that is read on the side stream is unchanged at the end of the backward pass") {
  constexpr std::size_t kLayers = 4;
  MultiLayerConfiguration configuration{.seed = 3, .inputShape = {8}};
  for (std::size_t i = 0; i < kLayers; ++i) {
    configuration.layers.push_back(Dense{.units = 8, .activation = Activation::Tanh});
    configuration.layers.push_back(Late{});
  }
  configuration.layers.push_back(Output{.classes = 3});
  MultiLayerNetwork model(configuration);
  model.init();
  seen.clear();
  model.gradient(test::classBatch({8}, 5, 3, 7));
  REQUIRE(seen.size() == kLayers);
  for (std::size_t i = 0; i < kLayers; ++i) {
    CAPTURE(i);
    const auto& [gradient, then] = seen[i];
    CHECK(std::memcmp(gradient.raw(), then.raw(), then.bytes()) == 0);
  }
}

TEST_CASE("the first layer computes its weights' gradient on the compute stream") {
  Context context;
  detail::ProgramGraph graph{.inputs = 1, .values = {{.shape = {2, 3}}}, .outputs = {3}};
  for (std::size_t i = 0; i < 3; ++i) {
    graph.values.push_back({.shape = {2, 3}, .learned = true});
    graph.nodes.push_back({.program = std::make_unique<LateProgram>(context),
                           .inputs = {{.value = i}},
                           .output = i + 1,
                           .runsBackward = true});
  }
  detail::placeValues(graph, /*training=*/true, context);
  CHECK_FALSE(graph.nodes[0].usesSideStream);
  CHECK(graph.nodes[1].usesSideStream);
  CHECK(graph.nodes[2].usesSideStream);
}

}  // namespace
}  // namespace muster
