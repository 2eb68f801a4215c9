#include "tests/parallel/data_parallel.h"

#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/optim/finite_gradient.h"
#include "muster/parallel/data_parallel/split.h"
#include "tests/support/at_rest.h"
#include "tests/support/devices.h"

using namespace muster;
using namespace muster::test;

namespace {

template <typename T>
constexpr double kTolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;

/// One forward and backward pass of the model alone and of the replicas.
template <typename T>
void checkPass(Model& alone, Model& model, DataParallel& parallel, const Tensor& input,
               double tolerance = kTolerance<T>) {
  Tensor output, gradInput;
  alone.forward(input, output);
  const Tensor gradOutput = randomTensor<T>(output.shape(), 2);
  alone.backward(gradOutput, &gradInput);
  parallel.zeroGradients();
  CHECK(distance<T>(parallel.forward(input), output) < tolerance);
  CHECK(distance<T>(parallel.backward(gradOutput), gradInput) < tolerance);
  CHECK(distance<T>(gradients(model), gradients(alone)) < tolerance);
}

MultiLayerNetwork smoothChain(double rate = 0.4) {
  return MultiLayerNetwork(
      {.seed = 5,
       .inputShape = {2, 8, 7},
       .layers = {Conv2d{.outChannels = 4, .kernel = {3, 3}, .activation = Activation::Tanh}, AveragePool2d{},
                  Dropout{.rate = rate}, Dense{.units = 9, .activation = Activation::Tanh},
                  Dense{.units = 3}}});
}

}  // namespace

TEST_CASE("with dim 1 a network takes sequences [T, N, F], and gives [T, N, C], or [N, C]") {
  constexpr std::int64_t kSteps = 4, kExamples = 10, kFeatures = 3, kUnits = 2;
  for (const bool everyStep : {true, false}) {
    CAPTURE(everyStep);
    MultiLayerNetwork network({.seed = 5,
                               .inputShape = {kSteps, kFeatures},
                               .layers = {LSTM{.units = kUnits, .returnSequences = everyStep}}});
    network.init();
    const Tensor input = randomTensor<float>({kSteps, kExamples, kFeatures}, 1);
    // The same with the examples first.
    Tensor moved, expected, gradInput;
    moveExamples(input, 1, 0, moved);
    Model& alone = network;
    alone.forward(moved, expected);
    const Tensor gradExpected = randomTensor<float>(expected.shape(), 2);
    alone.backward(gradExpected, &gradInput);
    const Tensor gradient = cloneTensor(gradients(network));
    DataParallel parallel(network, cpus(3), 1, unpinned());
    parallel.zeroGradients();
    const auto stepsFirst = [&](const Tensor& tensor) {
      if (!everyStep) return tensor;
      Tensor to;
      moveExamples(tensor, 0, 1, to);
      return to;
    };
    const Tensor output = parallel.forward(input);
    REQUIRE(output.shape() == (everyStep ? Shape{kSteps, kExamples, kUnits} : Shape{kExamples, kUnits}));
    CHECK(distance<float>(output, stepsFirst(expected)) < 1e-6);
    Tensor gradOfInput;
    moveExamples(parallel.backward(stepsFirst(gradExpected)), 1, 0, gradOfInput);
    CHECK(distance<float>(gradOfInput, gradInput) < 1e-5);
    CHECK(distance<float>(gradients(network), gradient) < 1e-5);
    const auto shapes = parallel.shapes();
    REQUIRE(shapes.size() == 3);
    for (std::size_t r = 0; r < 3; ++r)  // 10 over three: 4, 3, 3
      CHECK(shapes[r].input == Shape{r == 0 ? 4 : 3, kSteps, kFeatures});
  }
}

TEST_CASE_TEMPLATE("DataParallel's outputs and gradients equal the model's own, along either dimension", T,
                   float, double) {
  for (const bool timeMajor : {false, true})
    for (int replicas = 1; replicas <= 4; ++replicas) {
      SequenceModel<T> alone({.timeMajor = timeMajor}), model({.timeMajor = timeMajor});
      DataParallel parallel(model, cpus(replicas), timeMajor ? 1 : 0, unpinned());
      for (std::int64_t n = 1; n <= 33; ++n) {
        INFO("timeMajor ", timeMajor, ", replicas ", replicas, ", n ", n);
        const Shape shape = timeMajor ? Shape{4, n, 3} : Shape{n, 4, 3};
        checkPass<T>(alone, model, parallel, randomTensor<T>(shape, static_cast<std::uint64_t>(n)));
      }
    }
}

TEST_CASE("DataParallel equals a convolutional network with dropout, pass after pass") {
  for (int replicas = 1; replicas <= 4; ++replicas) {
    auto alone = smoothChain(), model = smoothChain();
    alone.init();
    model.init();
    DataParallel parallel(model, cpus(replicas), 0, unpinned());
    for (std::int64_t n = 1; n <= 33; ++n) {
      INFO("replicas ", replicas, ", n ", n);
      checkPass<float>(alone, model, parallel,
                       randomTensor<float>({n, 2, 8, 7}, static_cast<std::uint64_t>(n)));
    }
  }
}

TEST_CASE("gradients add up over backward() calls until they are zeroed") {
  SequenceModel<double> alone, model;
  DataParallel parallel(model, cpus(3), 0, unpinned());
  Tensor output;
  Tensor expected = Tensor::zeros(gradients(alone).shape(), DType::Float64);
  for (const std::uint64_t seed : {1, 2}) {
    const Tensor input = randomTensor<double>({7, 2, 3}, seed),
                 gradOutput = randomTensor<double>({7, 2, 2}, seed);
    alone.forward(input, output);
    alone.backward(gradOutput, nullptr);
    for (std::int64_t i = 0; i < expected.elements(); ++i)
      expected.data<double>()[i] += gradients(alone).data<double>()[i] * (seed == 2 ? 2 : 1);
    parallel.forward(input);
    parallel.backward(gradOutput);
    if (seed == 2) parallel.backward(gradOutput, nullptr);  // again after the same forward pass
  }
  CHECK(distance<double>(gradients(model), expected) < 1e-12);
  parallel.zeroGradients();
  CHECK(sameBits(gradients(model), Tensor::zeros(expected.shape(), DType::Float64)));
}

TEST_CASE("updateParameters() refuses a gradient that is not finite, and the parameters stay") {
  SequenceModel<double> model;
  DataParallel parallel(model, cpus(2), 0, unpinned());
  parallel.forward(randomTensor<double>({4, 2, 3}, 8));
  parallel.zeroGradients();
  const Tensor before = cloneTensor(parameters(model));
  gradients(model).data<double>()[0] = INFINITY;
  CHECK_THROWS_AS(parallel.updateParameters(0.1), UpdateRefused);
  CHECK(sameBits(parameters(model), before));
}

TEST_CASE_TEMPLATE("updateParameters() takes a step on the model, which the next forward() uses", T, float,
                   double) {
  SequenceModel<T> model;
  auto table = *model.block(BlockKind::Parameters).segments;
  table.segments[1].learningRateScale = 0.5;
  table.segments[2].frozen = true;
  model.block(BlockKind::Parameters).segments = std::make_shared<SegmentTable>(table);
  model.control().onReplicate = [&](int, Context& context) {
    auto replica = std::make_unique<SequenceModel<T>>(SequenceOptions{}, nullptr, &context);
    replica->block(BlockKind::Parameters).segments = model.block(BlockKind::Parameters).segments;
    return replica;
  };
  const Tensor before = cloneTensor(parameters(model));
  DataParallel parallel(model, cpus(2), 0, unpinned());
  const Tensor input = randomTensor<T>({5, 2, 3}, 1);
  parallel.backward(parallel.forward(input));
  parallel.updateParameters(0.125);
  for (const auto& segment : table.segments) {
    const double rate = segment.frozen ? 0 : 0.125 * segment.learningRateScale;
    for (std::int64_t i = segment.offset; i < segment.offset + segment.shape.elements(); ++i)
      CHECK(parameters(model).template data<T>()[i] ==
            static_cast<T>(before.data<T>()[i] - rate * gradients(model).template data<T>()[i]));
  }
  SequenceModel<T> alone;
  copy(parameters(model), parameters(alone));
  Tensor expected;
  alone.forward(input, expected);
  CHECK(distance<T>(parallel.forward(input), expected) < kTolerance<T>);
}

TEST_CASE("replicas copy the parameters when these have changed, or on request") {
  SequenceModel<double> model;
  DataParallel parallel(model, cpus(3), 0, unpinned());
  parallel.syncParameters();  // nothing to do yet
  const Tensor input = randomTensor<double>({6, 2, 3}, 1), two = randomTensor<double>({2, 2, 3}, 1);
  const Tensor first = parallel.forward(input);
  setZero(parameters(model), model.context());
  CHECK(sameBits(parallel.forward(input), first));  // replicas are not updated yet
  parallel.syncParameters();
  CHECK(sameBits(parallel.forward(input), Tensor::zeros(first.shape(), DType::Float64)));

  // A replica without a part of a small input takes the parameters later.
  parallel.zeroGradients();
  parallel.forward(input);
  std::ranges::fill(gradients(model).span<double>(), -0.25);
  parallel.updateParameters(1);
  parallel.forward(two);
  SequenceModel<double> alone;
  copy(parameters(model), parameters(alone));
  Tensor expected;
  alone.forward(input, expected);
  CHECK(distance<double>(parallel.forward(input), expected) < 1e-12);
}

TEST_CASE("evaluate() turns dropout off, training() turns it on, and evaluation passes are not counted") {
  auto model = smoothChain(), alone = smoothChain();
  model.init();
  alone.init();
  const Tensor input = randomTensor<float>({9, 2, 8, 7}, 1);
  DataParallel parallel(model, cpus(2), 0, unpinned());
  Tensor first, second;
  alone.forward(input, first);
  alone.forward(input, second);
  CHECK(distance<float>(parallel.forward(input), first) < 1e-5);
  parallel.evaluate();
  const Tensor evaluated = parallel.forward(input);
  CHECK(distance<float>(evaluated, model.output(input)) < 1e-5);
  CHECK(sameBits(parallel.forward(input), evaluated));
  CHECK(parallel.backward(evaluated).shape() == input.shape());
  parallel.training();
  CHECK(distance<float>(parallel.forward(input), second) < 1e-5);
}

TEST_CASE("a network takes its input shape from the first input, also if gradients are zeroed before") {
  MultiLayerNetwork model({.layers = {Dense{.units = 3}}});
  DataParallel parallel(model, cpus(2), 0, unpinned());
  parallel.zeroGradients();
  CHECK(parallel.forward(randomTensor<float>({5, 4}, 1)).shape() == Shape{5, 3});
  CHECK(model.configuration().inputShape == Shape{4});
}

TEST_CASE("the statistics are those of replica 0, and are copied to the others") {
  SequenceModel<double> model({.statistics = true});
  std::mutex mutex;
  std::set<double> seen;  // seen by replicas before a pass
  DataParallel parallel(model, cpus(3), 0, unpinned());
  model.control().onForward = [&](const Model* replica, const ForwardPass&) {
    std::scoped_lock lock(mutex);
    seen.insert(const_cast<Model*>(replica)->block(BlockKind::Statistics).values.data<double>()[0]);
  };
  const auto statistic = [&] { return model.block(BlockKind::Statistics).values.data<double>()[0]; };
  const Tensor input = randomTensor<double>({6, 1, 3}, 1);
  parallel.forward(input);
  CHECK(statistic() == 100);
  seen.clear();
  parallel.forward(input);
  CHECK(statistic() == 200);
  CHECK(seen == std::set<double>{100});
  parallel.evaluate();
  parallel.forward(input);
  CHECK(statistic() == 200);
}

TEST_CASE("DataParallel has the same bits on every run, for one to four replicas and two threads a replica") {
  for (const int replicas : {1, 2, 3, 4})
    for (const int threadsPerReplica : {1, 2}) {
      CAPTURE(replicas);
      const auto train = [&] {
        auto model = smoothChain();
        model.init();
        DataParallel parallel(model, cpus(replicas), 0,
                              {.threadsPerReplica = threadsPerReplica, .pinThreads = false});
        for (std::uint64_t step = 0; step < 10; ++step) {
          parallel.zeroGradients();
          Tensor output = parallel.forward(randomTensor<float>({11, 2, 8, 7}, step));
          parallel.backward(output);
          parallel.updateParameters(0.01);
        }
        return cloneTensor(parameters(model));
      };
      const Tensor first = train();
      for (int run = 0; run < 3; ++run) CHECK(sameBits(train(), first));
    }
}

TEST_CASE("each replica has a thread of its own, which runs init first") {
  SequenceModel<float> model;
  std::mutex mutex;
  std::vector<std::thread::id> threadOf(3);
  std::set<std::thread::id> used;
  model.control().onForward = [&](const Model*, const ForwardPass& pass) {
    std::scoped_lock lock(mutex);
    CHECK(threadOf[static_cast<std::size_t>(pass.firstExample / 2)] == std::this_thread::get_id());
    used.insert(std::this_thread::get_id());
  };
  DataParallel parallel(model, cpus(3), 0, unpinned([&](int replica) {
                          threadOf.at(static_cast<std::size_t>(replica)) = std::this_thread::get_id();
                          CHECK(model.control().replicated == 0);
                        }));
  for (int call = 0; call < 5; ++call) parallel.forward(randomTensor<float>({6, 2, 3}, 1));
  CHECK(used == std::set(threadOf.begin(), threadOf.end()));
  CHECK(used.size() == 3);
  CHECK_FALSE(used.contains(std::this_thread::get_id()));
}

TEST_CASE("memory and threads do not grow over many calls, and are freed") {
  auto model = smoothChain();
  model.init();
  std::vector<Tensor> inputs;
  for (const std::int64_t n : {8, 3, 1}) inputs.push_back(randomTensor<float>({n, 2, 8, 7}, 1));
  const auto calls = [&](DataParallel& parallel, int count) {
    for (int call = 0; call < count; ++call) {
      parallel.zeroGradients();
      for (const auto& input : inputs) parallel.backward(parallel.forward(input));
      parallel.updateParameters(0.01);
    }
    return liveObjectsAtRest();
  };
  const auto once = [&] {
    DataParallel parallel(model, cpus(3), 0, unpinned());
    calls(parallel, 3);
  };
  once();
  const auto threadsBefore = awaitRest();
  const long objectsBefore = liveObjectsAtRest();
  {
    DataParallel parallel(model, cpus(3), 0, unpinned());
    calls(parallel, 5);
    const long settled = calls(parallel, 5);
    CHECK(awaitRest() == threadsBefore + 3);
    CHECK(calls(parallel, 200) == settled);
    CHECK(awaitRest() == threadsBefore + 3);
  }
  CHECK(awaitRest() == threadsBefore);
  CHECK(liveObjectsAtRest() == objectsBefore);
  SequenceModel<float> counted;
  { DataParallel(counted, cpus(2), 0, unpinned()).forward(randomTensor<float>({4, 2, 3}, 1)); }
  CHECK(counted.control().alive == 1);
}

TEST_CASE("new outputs do not change earlier ones, while a given output is overwritten") {
  SequenceModel<float> model;
  DataParallel parallel(model, cpus(2), 0, unpinned());
  const Tensor a = randomTensor<float>({4, 2, 3}, 1), b = randomTensor<float>({4, 2, 3}, 2);
  const Tensor first = parallel.forward(a), copyOfFirst = cloneTensor(first);
  Tensor second;
  parallel.forward(b, second);
  CHECK(sameBits(first, copyOfFirst));
  const void* place = second.raw();
  parallel.forward(a, second);
  CHECK(second.raw() == place);
  CHECK(sameBits(second, first));
}

TEST_CASE_ON("replicas on a GPU compute the same as the model alone on the CPU", Where, OnGpu) {
  auto alone = smoothChain(0);
  auto model = smoothChain(0);
  alone.init();
  model.init();
  DataParallel parallel(model, {Device::cuda(0), Device::cuda(0), Device::cuda(0)}, 0, unpinned());
  for (std::uint64_t pass = 0; pass < 2; ++pass) {
    // TF32 rounds factors to 10 bits.
    checkPass<float>(alone, model, parallel, randomTensor<float>({7, 2, 8, 7}, pass), 1e-2);
    parallel.updateParameters(0.01);
    alone.copyStateFrom(model);
  }
}

TEST_CASE_ON("replicas on a GPU use the given math mode", Where, OnGpuInBFloat16) {
  // Sizes that every library supports in every math mode.
  const MultiLayerConfiguration wide{
      .seed = 5,
      .inputShape = {64},
      .layers = {Dense{.units = 64, .activation = Activation::Tanh}, Dense{.units = 64}}};
  MultiLayerNetwork alone(wide);
  alone.init();
  const Tensor input = randomTensor<float>({32, 64}, 1);
  Tensor expected;
  alone.forward(input, expected);
  const auto errorIn = [&](MathMode mode) {
    MultiLayerNetwork model(wide);
    model.init();
    DataParallelOptions options = unpinned();
    options.mathMode = mode;
    DataParallel parallel(model, {Where::device(), Where::device()}, 0, options);
    return distance<float>(parallel.forward(input), expected);
  };
  CHECK(errorIn(MathMode::Float32) < 1e-5);
  CHECK(errorIn(MathMode::TensorFloat32) < 1e-2);
  const double coarse = errorIn(MathMode::BFloat16);
  CHECK(coarse < 1e-1);
  CHECK(coarse > 1e-4);
}

TEST_CASE("inputs and gradients that are not on the CPU are refused") {
  auto model = smoothChain();
  DataParallel parallel(model, cpus(2), 0, unpinned());
  float place = 0;
  const Tensor elsewhere = Tensor::view(&place, {1, 2, 8, 7}, DType::Float32, Device::cuda(0));
  CHECK_REFUSED(parallel.forward(elsewhere),
                "data parallel: the input is float32 [1, 2, 8, 7] on cuda:0; it must be on the CPU; each "
                "replica copies its part from there");
}
