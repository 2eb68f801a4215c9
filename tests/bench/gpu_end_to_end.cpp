// Training speed on a GPU, end to end, beside PyTorch on the same machine in the same run: the MNIST convnet
// of 1, 2, 4 and 8 workers on one GPU, or ResNet-18 of one. Each measurement is a process of its own, this
// program run again with --arm, or torch_training.py beside it. Prints a table and how far the goals are
// reached.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "muster/core/nn/models/resnet18.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/bench/arms.h"
#include "tests/bench/networks.h"
#include "tests/bench/timing.h"

namespace {

using namespace muster;
using namespace muster::bench;

/// Batches an epoch: rounds of three iterations of eight workers divide it, and 480 of 128 are about MNIST.
constexpr std::int64_t kBatches = 480, kResnetBatches = 48;

struct Options {
  std::string device = "cuda:0", network = "convnet", python = "python3";
  std::int64_t batch = 0, averagingFrequency = 3;
  double seconds = 2;
  int rounds = 5, timeLimit = 300;
  int arm = 0;
  std::string jsonFile;
};

/// `fit(epochs)` over and over for so many seconds, after a warm-up. @return epochs a second.
template <typename Fit>
double epochsPerSecond(double seconds, Fit fit) {
  fit(1);  // replicas, programs and graphs are made here
  fit(1);
  auto begin = Clock::now();
  fit(1);
  const auto epochs = std::max<std::int64_t>(1, std::llround(seconds / secondsSince(begin)));
  begin = Clock::now();
  fit(epochs);
  return static_cast<double>(epochs) / secondsSince(begin);
}

void printResult(double samplesPerSecond, double score, MathMode mode) {
  if (!std::isfinite(score)) throw std::runtime_error("the score is not finite");
  fmt::print("{{\"samplesPerSecond\": {:.1f}, \"mathMode\": \"{}\"}}\n", samplesPerSecond, nameOf(mode));
}

/// Images as MNIST's files have them, a byte a pixel, that lie on the GPU as PyTorch's do.
void measureConvnet(const Options& options) {
  const Device device = Device::parse(options.device);
  MultiLayerNetwork model(convnet());
  model.init();
  auto data = randomImages(kBatches * options.batch, options.batch, DType::UInt8, MemoryPlacement::Device);
  auto wrapper = ParallelWrapper::Builder(model)
                     .workers(options.arm)
                     .devices({device})
                     .averagingFrequency(options.averagingFrequency)
                     .prefetchBuffer(24)
                     .build();
  const double epochs =
      epochsPerSecond(options.seconds, [&](std::int64_t count) { wrapper.fit(data, count); });
  printResult(epochs * static_cast<double>(kBatches * options.batch), model.score(),
              Context(device).mathMode());
}

void measureResnet18(const Options& options) {
  Context context(Device::parse(options.device));
  auto configuration = resnet18(10);
  configuration.updater = Sgd{.learningRate = 0.01};
  ComputationGraph model(configuration, context);
  model.init();
  auto data =
      randomImages(kResnetBatches * options.batch, options.batch, DType::UInt8, MemoryPlacement::Device);
  const double epochs = epochsPerSecond(options.seconds, [&](std::int64_t count) { model.fit(data, count); });
  printResult(epochs * static_cast<double>(kResnetBatches * options.batch), model.score(),
              context.mathMode());
}

constexpr const char *kEager = "PyTorch, eager", *kCompiled = "PyTorch, torch.compile",
                     *kCaptured = "PyTorch, captured graph";

std::string workersName(int workers) {
  return fmt::format("muster, {} worker{}", workers, workers == 1 ? "" : "s");
}

std::vector<Arm> makeArms(const Options& options) {
  const auto self = std::filesystem::canonical("/proc/self/exe");
  const MathMode mode = Context(Device::parse(options.device)).mathMode();
  const auto common = fmt::format("--network {} --device {} --batch {} --seconds {}", options.network,
                                  options.device, options.batch, options.seconds);
  const auto torch = [&](const char* variant) {
    return fmt::format("timeout -k 10 {} {} '{}' --variant {} --math-mode {} {}", options.timeLimit,
                       options.python, (self.parent_path() / "torch_training.py").string(), variant,
                       nameOf(mode), common);
  };
  std::vector<Arm> arms{{kEager, torch("eager")}, {kCompiled, torch("compile")}, {kCaptured, torch("graph")}};
  for (const int workers : {1, 2, 4, 8}) {
    if (workers > 1 && options.network != "convnet") break;
    arms.push_back(
        {workersName(workers),
         fmt::format("timeout -k 10 {} '{}' --arm {} --averaging-frequency {} {}", options.timeLimit,
                     self.string(), workers, options.averagingFrequency, common)});
  }
  return arms;
}

const Arm& bestGraphed(const std::vector<Arm>& arms) {
  const Arm &compiled = find(arms, kCompiled), &captured = find(arms, kCaptured);
  return captured.median("samplesPerSecond").value_or(0) > compiled.median("samplesPerSecond").value_or(0)
             ? captured
             : compiled;
}

std::string timesText(std::optional<double> times) {
  return times ? fmt::format("{:.2f} x", *times) : "-";
}

void printRow(const Arm& arm, const std::vector<Arm>& arms, bool isConvnet) {
  const auto samples = arm.sorted("samplesPerSecond");
  if (samples.empty()) {
    fmt::print("{:<26} {}\n", arm.name, arm.failure);
    return;
  }
  const double median = *arm.median("samplesPerSecond");
  fmt::print("{:<26} {:>10.0f} {:>21}", arm.name, median,
             fmt::format("{:.0f} - {:.0f}", samples.front(), samples.back()));
  fmt::print(" {:>10} {:>9} {:>15}", isConvnet ? fmt::format("{:.3f}", 60000 / median) : "-",
             timesText(ratio(arm, find(arms, kEager))), timesText(ratio(arm, bestGraphed(arms))));
  if (isConvnet) fmt::print(" {:>11}", timesText(ratio(arm, find(arms, workersName(1)))));
  fmt::print("{}\n", arm.failure.empty() ? "" : "  then: " + arm.failure);
}

void printGoal(const char* text, std::optional<double> times, double goal) {
  fmt::print("{:<56} goal {:.1f} x, measured {}: {}\n", text, goal, timesText(times),
             !times           ? "no figure"
             : *times >= goal ? "reached"
                              : "missed");
}

void printTable(const std::vector<Arm>& arms, const Options& options) {
  const bool isConvnet = options.network == "convnet";
  const Context context(Device::parse(options.device));
  const auto device = propertiesOf(context.device());
  fmt::print("{}, batch {}, on {}, products in {}; medians of {} rounds of {} s after warm-up\n",
             isConvnet ? "MNIST convnet, Nesterovs, L2" : "ResNet-18 on images 1x28x28, plain SGD",
             options.batch, device.name, nameOf(context.mathMode()), options.rounds, options.seconds);
  if (isConvnet)
    fmt::print("muster: all workers on this device, averaging every {} iterations, images on it as bytes\n",
               options.averagingFrequency);
  for (const auto& arm : arms)
    if (!arm.results.empty() && arm.results.front().contains("about")) {
      fmt::print("{}\n", arm.results.front().at("about").as_string().c_str());
      break;
    }
  fmt::print("\n{:<26} {:>10} {:>21} {:>10} {:>9} {:>15}", "", "samples/s", "least - most", "s an epoch",
             "vs eager", "vs best graphed");
  fmt::print("{}\n", isConvnet ? " vs 1 worker" : "");
  for (const auto& arm : arms) printRow(arm, arms, isConvnet);
  if (!isConvnet) return;
  fmt::print("An epoch has 60000 images.\n\n");
  const Arm& one = find(arms, workersName(1));
  printGoal("one worker against PyTorch eager", ratio(one, find(arms, kEager)), 5);
  printGoal("one worker against PyTorch's best graphed variant", ratio(one, bestGraphed(arms)), 1.3);
  printGoal("8 workers against one", ratio(find(arms, workersName(8)), one), 3);
}

/// @return whether every measurement of our own succeeded.
bool compareAll(const Options& options) {
  auto arms = makeArms(options);
  measureInTurns(arms, options.rounds);
  printTable(arms, options);
  if (!options.jsonFile.empty()) writeJson({{options.network, arms}}, options.jsonFile);
  return std::ranges::all_of(
      arms, [](const Arm& arm) { return !arm.name.starts_with("muster") || arm.failure.empty(); });
}

}  // namespace

int main(int argc, char** argv) try {
  namespace po = boost::program_options;
  Options options;
  po::options_description description("Training speed on a GPU, beside PyTorch where Python has it");
  auto add = description.add_options();
  add("help", "show this text");
  add("network", po::value(&options.network), "convnet or resnet18 [convnet]");
  add("device", po::value(&options.device), "where all workers are [cuda:0]");
  add("batch", po::value(&options.batch), "images a step [128; 256 of ResNet-18]");
  add("averaging-frequency", po::value(&options.averagingFrequency), "iterations between merges [3]");
  add("seconds", po::value(&options.seconds), "each measurement takes, after its warm-up [2]");
  add("rounds", po::value(&options.rounds), "measurements of each arm, in turns [5]");
  add("time-limit", po::value(&options.timeLimit), "seconds after which a measurement has failed [300]");
  add("python", po::value(&options.python), "runs the PyTorch variants [python3]");
  add("json", po::value(&options.jsonFile), "write all measurements to this file");
  add("arm", po::value(&options.arm), "measure this many workers, and print JSON");
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, description), given);
  po::notify(given);
  if (given.contains("help")) {
    std::cout << description;
    return 0;
  }
  if (options.network != "convnet" && options.network != "resnet18")
    throw std::invalid_argument("network: expected convnet or resnet18, got " + options.network);
  if (options.rounds < 1 || options.seconds <= 0 || options.timeLimit < 1)
    throw std::invalid_argument("rounds, seconds and time-limit must be positive");
  if (options.batch == 0) options.batch = options.network == "convnet" ? 128 : 256;
  if (options.arm == 0) return compareAll(options) ? 0 : 1;
  if (options.network == "convnet")
    measureConvnet(options);
  else
    measureResnet18(options);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "gpu_end_to_end: {}\n", error.what());
  return 1;
}
