// Tests that training on a device always gives the same bits, in cases where races are most likely: recorded
// steps in tensor-core modes, eight workers, and recorded gradients with the side stream compared with
// gradients computed call by call in order.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "muster/core/base/random.h"
#include "muster/core/listeners/progress_listener.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/bench/command_line.h"
#include "tests/bench/networks.h"
#include "tests/bench/replica_steps.h"
#include "tests/support/network_probe.h"

namespace {

using namespace muster;
using namespace muster::bench;

struct Options {
  Device device = Device::cuda(0);
  std::int64_t batch = 128;
  int steps = 40, gradients = 400, workers = 8, runs = 3;
};

int failures = 0;

void report(const std::string& what, bool same, const std::string& detail = "") {
  fmt::print("{:<76} {}{}\n", what, same ? "the same bits" : "DIFFERENT BITS",
             detail.empty() ? "" : ", " + detail);
  if (!same) ++failures;
}

Batch randomBatch(std::int64_t examples, std::uint64_t seed) {
  Batch batch;
  const RandomStream random(seed, "images");
  auto& features = Batch::ensure(batch.features, "features", {examples, 1, 28, 28});
  for (std::int64_t i = 0; i < features.elements(); ++i)
    features.data<float>()[i] = static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)));
  auto& labels = Batch::ensure(batch.labels, "labels", {examples}, DType::Int64);
  for (std::int64_t i = 0; i < examples; ++i)
    labels.data<std::int64_t>()[i] = (i + static_cast<std::int64_t>(seed)) % 10;
  return batch;
}

/// A stem and one residual block.
ComputationGraphConfiguration residualBlock() {
  ComputationGraphConfiguration graph{.seed = 7,
                                      .updater = Nesterovs{.learningRate = 0.01},
                                      .inputs = {{.name = "image", .shape = {1, 28, 28}}}};
  const auto convolution = [&](const std::string& name, const std::string& input, Activation activation) {
    graph.add(name, Conv2d{.outChannels = 32, .kernel = {3, 3}, .padding = {1, 1}, .bias = false}, {input});
    return graph.add(name + ".norm", BatchNorm{.activation = activation}, {name});
  };
  const auto stem = convolution("stem", "image", Activation::ReLU);
  const auto first = convolution("conv1", stem, Activation::ReLU);
  const auto second = convolution("conv2", first, Activation::Identity);
  const auto sum = graph.add("sum", Combine{.combination = Combination::Add, .activation = Activation::ReLU},
                             {second, stem});
  const auto pool = graph.add("pool", GlobalPool2d{.kind = PoolKind::Average}, {sum});
  graph.addOutput(graph.add("output", Output{.classes = 10}, {pool}));
  return graph;
}

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Network>(Context&)> make;
};

std::unique_ptr<Network> made(std::unique_ptr<Network> network) {
  network->init();
  if (network->context().device().isCpu()) test::setEnqueuedSteps(*network, true);
  return network;
}

std::vector<Kind> kinds() {
  return {{"convnet", [](Context& c) { return made(std::make_unique<MultiLayerNetwork>(convnet(), c)); }},
          {"residual block",
           [](Context& c) { return made(std::make_unique<ComputationGraph>(residualBlock(), c)); }}};
}

/// Copies of the parameter blocks or gradient blocks.
std::vector<Tensor> copyOf(Model& model, bool gradients) {
  std::vector<Tensor> values;
  for (auto* block : model.state())
    if ((block->kind == BlockKind::Gradients) == gradients)
      values.push_back(copyTo(block->values, Device::cpu()));
  return values;
}

/// The number of bytes that differ.
std::size_t difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].bytes() != b[i].bytes()) throw std::runtime_error("blocks differ in size");
    const auto *x = static_cast<const unsigned char*>(a[i].raw()),
               *y = static_cast<const unsigned char*>(b[i].raw());
    if (std::memcmp(x, y, a[i].bytes()) == 0) continue;
    for (std::size_t k = 0; k < a[i].bytes(); ++k) count += x[k] != y[k];
  }
  return count;
}

std::vector<Batch> batchesOf(const Options& options) {
  std::vector<Batch> batches;
  for (std::uint64_t i = 0; i < 8; ++i) batches.push_back(randomBatch(options.batch, i));
  return batches;
}

ContextOptions contextOptions(MathMode mode, const Options& options) {
  return {.mathMode = options.device.isCpu() ? MathMode::Float32 : mode};
}

void trainTwice(const Kind& kind, MathMode mode, const Options& options) {
  const auto batches = batchesOf(options);
  std::vector<Tensor> states[2];
  std::int64_t launched = 0;
  for (auto& state : states) {
    Context context(options.device, contextOptions(mode, options));
    const auto network = kind.make(context);
    for (int i = 0; i < options.steps; ++i) {
      Batch batch = batches[static_cast<std::size_t>(i) % batches.size()];
      batch.stamp = {.sequence = i, .iteration = i, .firstExample = i * options.batch};
      network->step(batch);
    }
    context.synchronize();
    launched = test::stepCounts(*network).launched;
    state = copyOf(*network, false);
  }
  report(fmt::format("{}, {}, {} steps, twice", kind.name, nameOf(mode), options.steps),
         difference(states[0], states[1]) == 0);
  if (launched < options.steps - 2 && !recordingIsOff())
    report(fmt::format("{}, {}: {} of {} steps were launched as graphs", kind.name, nameOf(mode), launched,
                       options.steps),
           false);
}

/// Compares gradients of recorded steps with the side stream with gradients computed call by call in order.
void compareGradients(const Kind& kind, MathMode mode, const Options& options) {
  const auto batches = batchesOf(options);
  Context recordedContext(options.device, contextOptions(mode, options)),
      plainContext(options.device, contextOptions(mode, options));
  const auto recorded = kind.make(recordedContext), plain = kind.make(plainContext);
  int differing = 0, firstAt = -1;
  std::size_t mostBytes = 0;
  for (int i = 0; i < options.gradients; ++i) {
    const Batch& batch = batches[static_cast<std::size_t>(i) % batches.size()];
    recorded->gradient(batch);
    {
      const SideStreamScope inOrder(plainContext);  // so that steps do not use the side stream
      plain->gradient(batch);
    }
    recordedContext.synchronize();
    plainContext.synchronize();
    const std::size_t bytes = difference(copyOf(*recorded, true), copyOf(*plain, true));
    if (bytes > 0 && firstAt < 0) firstAt = i;
    differing += bytes > 0;
    mostBytes = std::max(mostBytes, bytes);
  }
  report(fmt::format("{}, {}, {} recorded gradients against call by call", kind.name, nameOf(mode),
                     options.gradients),
         differing == 0,
         differing == 0 ? ""
                        : fmt::format("{} of them, first number {}, at most {} bytes", differing, firstAt + 1,
                                      mostBytes));
  const auto launched = test::stepCounts(*recorded).launched;
  if ((launched == 0 && !recordingIsOff()) || test::stepCounts(*plain).launched != 0)
    report(fmt::format("{}, {}: gradients were not recorded as they should", kind.name, nameOf(mode)), false);
}

void trainWorkers(MathMode mode, const Options& options) {
  std::vector<Tensor> first;
  auto data = randomImages(options.workers * 3 * 4 * options.batch, options.batch, DType::UInt8,
                           options.device.isCpu() ? MemoryPlacement::Host : MemoryPlacement::Device);
  bool same = true;
  detail::StepCounts steps;
  for (int run = 0; run < options.runs; ++run) {
    MultiLayerNetwork model(convnet());
    model.init();
    auto builder = ParallelWrapper::Builder(model);
    builder.workers(options.workers).averagingFrequency(3).pinThreads(false);
    if (options.device.isCpu())
      builder.prefetchBuffer(4);
    else
      builder.devices({options.device}).mathMode(mode);
    ReplicaSteps replicas;
    auto wrapper = builder.internals(replicas.internals()).build();
    wrapper.fit(data, 2);
    steps += replicas.counts();
    const auto state = copyOf(model, false);
    if (run == 0) first = state;
    same = same && difference(first, state) == 0;
  }
  report(fmt::format("convnet, {}, {} workers at frequency 3, {} times", nameOf(mode), options.workers,
                     options.runs),
         same);
  if (!options.device.isCpu() && !steps.recorded() && !recordingIsOff())
    report(fmt::format("convnet, {}, {} workers: {} of {} steps were launched as graphs", nameOf(mode),
                       options.workers, steps.launched, steps.all()),
           false);
}

/// For profilers: a step call by call, two recorded and launched, and one launched again, with the side
/// stream. @return whether all but the first were launched.
bool takeSteps(const Options& options) {
  Context context(options.device);
  const auto network = kinds().front().make(context);
  for (std::uint64_t i = 0; i < 4; ++i) network->step(randomBatch(options.batch, i)).wait();
  context.synchronize();
  const auto launched = test::stepCounts(*network).launched;
  fmt::print("{} of 4 steps were launched as graphs\n", launched);
  return launched >= 3 || recordingIsOff();
}

}  // namespace

int main(int argc, char** argv) try {
  muster::showProgress(false);
  namespace po = boost::program_options;
  Options options;
  std::string device = options.device.toString();
  po::options_description description("Whether training on a device gives the same bits whenever it runs");
  auto add = description.add_options();
  add("device", po::value(&device), "which [cuda:0]");
  add("batch", po::value(&options.batch), "images per step [128]");
  add("steps", po::value(&options.steps), "of each network that trains alone [40]");
  add("gradients", po::value(&options.gradients), "compared of each network [400]");
  add("workers", po::value(&options.workers), "that train together [8]");
  add("runs", po::value(&options.runs), "of these workers [3]");
  add("step", "only take four steps of the convnet");
  po::variables_map given;
  if (!readCommandLine(argc, argv, description, given)) return 0;
  if (options.batch < 1 || options.steps < 4 || options.gradients < 3 || options.workers < 1 ||
      options.runs < 2)
    throw std::invalid_argument("at least 1 image, 4 steps, 3 gradients, 1 worker and 2 runs are needed");
  options.device = Device::parse(device);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (given.contains("step")) return takeSteps(options) ? 0 : 1;
  std::vector<MathMode> modes{MathMode::Float32};
  if (!options.device.isCpu() && propertiesOf(options.device).tensorFloat32)
    modes = {MathMode::TensorFloat32, MathMode::BFloat16};
  for (const MathMode mode : modes) {
    for (const Kind& kind : kinds()) {
      trainTwice(kind, mode, options);
      compareGradients(kind, mode, options);
    }
    trainWorkers(mode, options);
  }
  return failures == 0 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "device_bits: {}\n", error.what());
  return 1;
}
