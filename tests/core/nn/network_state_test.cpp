#include "muster/core/nn/compile/network_state.h"

#include "tests/core/device/fake_root.h"
#include "tests/core/nn/test.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

/// y = x * gain + offset, the offset frozen and the gain at half the learning rate. Keeps state for each
/// merge rule: mean and variance of its last batch (moments), the number of batches (reset by a merge), and
/// the last batch's size (kept per replica).
struct Affine {
  static constexpr std::string_view kType = "test-affine";
  std::string name = {};
  double gainScale = 0.5;
  bool varianceToo = true;

  Shape outputShape(const Shape& input) const { return input; }
  std::vector<ParameterSpec> parameters(const Shape& input) const {
    return {{.name = "gain", .shape = input, .init = Init::normal(1), .learningRateScale = gainScale},
            {.name = "offset", .shape = input, .init = Init::normal(1), .frozen = true}};
  }
  std::vector<ParameterSpec> statistics(const Shape& input) const {
    std::vector<ParameterSpec> specs{
        {.name = "size", .shape = {1}, .merge = MergeRule::Keep},
        {.name = "mean", .shape = input, .merge = MergeRule::Moments},
        {.name = "batches", .shape = {1}, .merge = MergeRule::Reset},
        {.name = "variance", .shape = input, .merge = MergeRule::Moments},
        {.name = "smoothed", .shape = {2}, .init = Init::normal(1)},
    };
    if (!varianceToo) specs.erase(specs.begin() + 3);
    return specs;
  }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context&) const {
    return std::make_unique<Program>(binding);
  }
  void fields(Fields& f) { f.field("name", name); }
  void validate() const {}

  struct Program final : ModuleProgram {
    explicit Program(const ModuleBinding& b) : binding(b) {}
    static float* at(const Tensor& tensor) { return tensor.data<float>(); }
    void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
      const std::int64_t features = x.shape()[1];
      for (std::int64_t i = 0; i < x.elements(); ++i)
        at(y)[i] =
            at(x)[i] * at(binding.parameters[0])[i % features] + at(binding.parameters[1])[i % features];
      if (info.training) note(x);
    }
    void backward(const Tensor& x, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
      const std::int64_t features = x.shape()[1];
      for (const auto& gradient : binding.gradients) std::ranges::fill(gradient.span<float>(), 0.0f);
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        at(binding.gradients[0])[i % features] += at(gradY)[i] * at(x)[i];
        at(binding.gradients[1])[i % features] += at(gradY)[i];
        if (gradX.defined()) at(gradX)[i] = at(gradY)[i] * at(binding.parameters[0])[i % features];
      }
    }
    void note(const Tensor& x) {
      const auto examples = x.shape()[0], features = x.shape()[1];
      const auto count = static_cast<float>(examples);
      *at(binding.statistics[0]) = count;
      *at(binding.statistics[2]) += 1;
      for (std::int64_t f = 0; f < features; ++f) {
        float sum = 0, squares = 0;
        for (std::int64_t n = 0; n < examples; ++n) sum += at(x)[n * features + f];
        for (std::int64_t n = 0; n < examples; ++n)
          squares += std::pow(at(x)[n * features + f] - sum / count, 2.0f);
        at(binding.statistics[1])[f] = sum / count;
        at(binding.statistics[3])[f] = squares / count;
      }
    }
    ModuleBinding binding;
  };
};

MultiLayerConfiguration twoOfThem(const Updater& updater = {}) {
  return {.seed = 3,
          .updater = updater,
          .inputShape = {3},
          .layers = {Affine{.name = "first"}, Dense{.units = 20}, Affine{.name = "second"},
                     Output{.classes = 2}}};
}

std::vector<std::string> namesIn(const StateBlock& block) {
  std::vector<std::string> names;
  for (const auto& segment : block.segments->segments) names.push_back(segment.name);
  return names;
}

const StateBlock& blockOf(MultiLayerNetwork& network, MergeRule rule) {
  for (const auto& block : network.blocks())
    if (block.kind == BlockKind::Statistics && block.merge == rule) return block;
  throw std::logic_error("the network has no such block");
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("statistics have one block a merge rule, and moments are all means, then all variances") {
  MultiLayerNetwork network(twoOfThem());
  network.init();
  CHECK(network.blocks().size() == 6);
  CHECK(namesIn(blockOf(network, MergeRule::Average)) == Names{"first.smoothed", "second.smoothed"});
  CHECK(namesIn(blockOf(network, MergeRule::Keep)) == Names{"first.size", "second.size"});
  CHECK(namesIn(blockOf(network, MergeRule::Reset)) == Names{"first.batches", "second.batches"});
  const auto& moments = blockOf(network, MergeRule::Moments);
  CHECK(namesIn(moments) == Names{"first.mean", "second.mean", "first.variance", "second.variance"});
  const auto& segments = moments.segments->segments;
  const std::int64_t half = moments.values.elements() / 2;
  CHECK(moments.values.elements() == 2 * half);
  CHECK(segments[2].offset == half + segments[0].offset);
  CHECK(segments[3].offset == half + segments[1].offset);
  // Initialised like parameters, by its full name.
  CHECK(blockOf(network, MergeRule::Average).segment("first.smoothed").data<float>()[0] != 0);
}

TEST_CASE("a user-defined layer declares what is frozen, and the learning rates of the rest") {
  MultiLayerNetwork network(twoOfThem(Sgd{.learningRate = 0.5}));
  network.init();
  const auto& parameters = network.block(BlockKind::Parameters);
  const auto& gradients = network.block(BlockKind::Gradients);
  const auto gain = floatsOf(parameters.segment("second.gain"));
  const auto offset = floatsOf(parameters.segment("second.offset"));
  const auto bias = floatsOf(parameters.segment("dense1.bias"));
  network.step(classBatch({3}, 5, 2, 1));
  CHECK(floatsOf(parameters.segment("second.offset")) == offset);
  for (std::size_t i = 0; i < 20; ++i) {
    const auto gradient = [&](const char* name) { return gradients.segment(name).data<float>()[i]; };
    CHECK(gradient("second.offset") != 0);
    CHECK(parameters.segment("second.gain").data<float>()[i] == gain[i] - 0.25f * gradient("second.gain"));
    CHECK(parameters.segment("dense1.bias").data<float>()[i] == bias[i] - 0.5f * gradient("dense1.bias"));
  }
}

TEST_CASE("a wrapper merges a layer's statistics by the rules that the layer declares") {
  MultiLayerNetwork network(twoOfThem()), alone(twoOfThem());
  for (auto* each : {&network, &alone}) each->init();
  const Batch all = classBatch({3}, 12, 2, 4);
  ListIterator data({partOf(all, 0, 4), partOf(all, 4, 12)});
  auto wrapper = toyWrapper(network, 2).build();
  wrapper.fit(data);
  alone.gradient(all);
  // The mixture's moments are those of the twelve examples together.
  for (const char* name : {"first.mean", "first.variance"})
    CHECK(maxError(blockOf(network, MergeRule::Moments).segment(name),
                   toArray(blockOf(alone, MergeRule::Moments).segment(name))) < 1e-5);
  CHECK(*blockOf(network, MergeRule::Reset).segment("first.batches").data<float>() == 0);
}

TEST_CASE("invalid declarations of a user-defined layer are refused by name") {
  const auto messageFor = [](const Affine& layer) {
    return thrown<InvalidArgument>([&] {
      MultiLayerNetwork network({.inputShape = {3}, .layers = {layer, Output{.classes = 2}}});
      network.init();
    });
  };
  CHECK(messageFor({.name = "a", .varianceToo = false}) ==
        "network: a.mean [3] is merged as moments, so a variance of its shape must follow it");
  CHECK(messageFor({.name = "a", .gainScale = -1}) ==
        "network: the learning-rate scale of a.gain must be finite and not negative, got -1");
}

TEST_CASE("parameters that exceed the memory limit are refused, and the largest is named") {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/memory.max", "100000000");
  root.write("sys/fs/cgroup/memory.current", "40000000");
  SegmentTable parameters;
  parameters.add({.name = "dense1.weight", .shape = {1000, 4800}});
  parameters.add({.name = "dense1.bias", .shape = {1600}});
  // 4.8016 million numbers of 4 bytes: three blocks of 19.2 MB fit 60 MB, four do not.
  CHECK_NOTHROW(muster::detail::requireRoom(parameters, 3, root.path().string()));
  CHECK(thrown<OutOfMemory>([&] { muster::detail::requireRoom(parameters, 4, root.path().string()); }) ==
        "network: its parameters, gradients and updater state take 76.8 MB, but of the 100.0 MB that this "
        "process may use (cgroup) 59.0 MB are left besides a hundredth that stays free; most of it: "
        "dense1.weight 4 x 19.2 MB");
}
