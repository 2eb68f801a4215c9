#include "muster/core/nn/compile/program_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/nn/batches.h"
#include "tests/support/test.h"

namespace muster {
namespace {

/// A gradient's tensor, and a copy of its values at the time of the layer's backward pass.
struct Seen {
  Tensor gradient, then;
};
std::vector<Seen> seen;

class LateProgram final : public ModuleProgram {
 public:
  explicit LateProgram(Context& context) : context_(context) {}
  bool readsGradientLate() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override { copy(x, y, context_); }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    seen.push_back({gradY, cloneTensor(gradY)});
    if (gradX.defined()) copy(gradY, gradX, context_);
  }

 private:
  Context& context_;
};

/// The identity; declares that it may read its output gradient until the backward pass ends.
struct Late {
  static constexpr std::string_view kType = "test-late";
  std::string name = {};
  Shape outputShape(const Shape& input) const { return input; }
  std::vector<ParameterSpec> parameters(const Shape&) const { return {}; }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding&, Context& context) const {
    return std::make_unique<LateProgram>(context);
  }
  void fields(Fields& f) { f.field("name", name); }
  void validate() const {}
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
