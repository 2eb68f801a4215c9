// Compares end-to-end training speed on a GPU with PyTorch on the same machine in the same run: the MNIST
// convnet with 1, 2, 4 and 8 workers on one GPU, or ResNet-18 with one worker. Each measurement is a separate
// process: this program with --arm, or torch_training.py. Prints a table and which goals are reached.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/base/log.h"
#include "muster/core/listeners/progress_listener.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/bench/arms.h"
#include "tests/bench/command_line.h"
#include "tests/bench/kernel_trace.h"
#include "tests/bench/networks.h"
#include "tests/bench/replica_steps.h"
#include "tests/bench/timing.h"
#include "tests/support/network_probe.h"

namespace {

using namespace muster;
using namespace muster::bench;

/// Batches per epoch: a multiple of three iterations of eight workers; 480 batches of 128 are about the size
/// of MNIST.
constexpr std::int64_t kBatches = 480, kResnetBatches = 48;

struct Options {
  std::string device = "cuda:0", network = "convnet", python = "python3";
  std::int64_t batch = 0, averagingFrequency = 3;
  double seconds = 2;
  int rounds = 5, timeLimit = 300;
  double budget = 0;  // seconds; 0: none
  int arm = 0;
  std::vector<int> traceWorkers{1, 2, 4, 8};
  std::string jsonFile, tableFile;
};

/// Repeats `fit(epochs)` for the given seconds after a warm-up. @return epochs per second.
template <typename Fit>
double epochsPerSecond(double seconds, Fit fit) {
  fit(1);  // creates replicas, programs and graphs
  fit(1);
  auto begin = Clock::now();
  fit(1);
  const auto epochs = std::max<std::int64_t>(1, std::llround(seconds / secondsSince(begin)));
  begin = Clock::now();
  fit(epochs);
  return static_cast<double>(epochs) / secondsSince(begin);
}

struct Result {
  double samplesPerSecond, score;
  MathMode mode;
  muster::detail::StepCounts steps;
};

void printResult(const Result& result) {
  const auto& steps = result.steps;
  fmt::print(
      "{{\"samplesPerSecond\": {:.1f}, \"mathMode\": \"{}\", \"launchedSteps\": {}, \"unrecordedSteps\": "
      "{}, \"firstSteps\": {}}}\n",
      result.samplesPerSecond, nameOf(result.mode), steps.launched, steps.unrecorded, steps.first);
}

/// The convnet and its workers on one device, with images of one byte per pixel, as in MNIST's files, stored
/// on the GPU as in the PyTorch program.
struct ConvnetTraining {
  ConvnetTraining(const Options& options, int workers)
      : model(convnet()),
        data(randomImages(kBatches * options.batch, options.batch, DType::UInt8, MemoryPlacement::Device)),
        wrapper(build(options, workers)) {}

  MultiLayerNetwork model;
  InMemoryDataSetIterator data;
  ReplicaSteps replicas;
  ParallelWrapper wrapper;

 private:
  ParallelWrapper build(const Options& options, int workers) {
    model.init();
    return ParallelWrapper::Builder(model)
        .workers(workers)
        .devices({Device::parse(options.device)})
        .averagingFrequency(options.averagingFrequency)
        .prefetchBuffer(24)
        .internals(replicas.internals())
        .build();
  }
};

Result measureConvnet(const Options& options) {
  ConvnetTraining training(options, options.arm);
  const double epochs = epochsPerSecond(
      options.seconds, [&](std::int64_t count) { training.wrapper.fit(training.data, count); });
  return {epochs * static_cast<double>(kBatches * options.batch), training.model.score(),
          Context(Device::parse(options.device)).mathMode(), training.replicas.counts()};
}

struct ResnetTraining {
  explicit ResnetTraining(const Options& options)
      : context(Device::parse(options.device)),
        model(plain(resnet18(10)), context),
        data(randomImages(kResnetBatches * options.batch, options.batch, DType::UInt8,
                          MemoryPlacement::Device)) {
    model.init();
  }

  Context context;
  ComputationGraph model;
  InMemoryDataSetIterator data;

 private:
  static ComputationGraphConfiguration plain(ComputationGraphConfiguration configuration) {
    configuration.updater = Sgd{.learningRate = 0.01};
    return configuration;
  }
};

Result measureResnet18(const Options& options) {
  ResnetTraining training(options);
  const double epochs =
      epochsPerSecond(options.seconds, [&](std::int64_t count) { training.model.fit(training.data, count); });
  return {epochs * static_cast<double>(kResnetBatches * options.batch), training.model.score(),
          training.context.mathMode(), muster::test::stepCounts(training.model)};
}

Result measureArm(const Options& options) {
  const Result result = options.network == "convnet" ? measureConvnet(options) : measureResnet18(options);
  if (!std::isfinite(result.score)) throw std::runtime_error("the score is not finite");
  return result;
}

/// The distinct lines that this process logs, with their counts.
class Lines {
 public:
  Lines() {
    setLogSink([this](LogLevel level, std::string_view text) {
      const std::scoped_lock lock(mutex_);
      ++(level == LogLevel::Debug ? details_ : others_)[std::string(text)];
    });
  }
  ~Lines() { setLogSink({}); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void print() const {
    const std::scoped_lock lock(mutex_);
    for (const auto& [text, count] : details_) fmt::print("{} ({} x)\n", text, count);
    for (const auto& [text, count] : others_) fmt::print("said: {} ({} x)\n", text, count);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> details_, others_;  // guarded by mutex_
};

/// Describes an arm: its speed, how its steps ran, the implementation of each layer, and the log. @return
/// whether its steps were launched as graphs.
bool describeArm(const Options& options) {
  Lines lines;
  const Result result = measureArm(options);
  const auto& steps = result.steps;
  fmt::print("{}, {} worker{}, batch {}, {}: {:.0f} samples/s, {:.1f} us a step of any worker\n",
             options.network, options.arm, options.arm == 1 ? "" : "s", options.batch, nameOf(result.mode),
             result.samplesPerSecond, 1e6 * static_cast<double>(options.batch) / result.samplesPerSecond);
  fmt::print("steps launched as graphs: {} of {}; steps that should have been, and were not: {}\n",
             steps.launched, steps.all(), steps.unrecorded);
  lines.print();
  return steps.recorded() || recordingIsOff();
}

/// The default of a context on the device, without creating one: a GPU may admit only one process at a time.
MathMode defaultMathMode(Device device) {
  const char* const switched = std::getenv("MUSTER_CUDA_MATH");
  for (const auto& [mode, name] : EnumNames<MathMode>::kNames)
    if (!device.isCpu() && switched && name == switched) return mode;
  return !device.isCpu() && propertiesOf(device).tensorFloat32 ? MathMode::TensorFloat32 : MathMode::Float32;
}

constexpr const char *kEager = "PyTorch, eager", *kCompiled = "PyTorch, torch.compile",
                     *kCaptured = "PyTorch, captured graph", *kBoth = "PyTorch, captured, compiled";

std::string workersName(int workers) {
  return fmt::format("muster, {} worker{}", workers, workers == 1 ? "" : "s");
}

std::string commonOptions(const Options& options) {
  return fmt::format("--network {} --device {} --batch {} --seconds {}", options.network, options.device,
                     options.batch, options.seconds);
}

Arm musterArm(const Options& options, int workers) {
  return {workersName(workers),
          fmt::format("timeout -k 10 {} '{}' --arm {} --averaging-frequency {} {}", options.timeLimit,
                      std::filesystem::canonical("/proc/self/exe").string(), workers,
                      options.averagingFrequency, commonOptions(options))};
}

std::vector<Arm> makeArms(const Options& options) {
  const auto script = std::filesystem::canonical("/proc/self/exe").parent_path() / "torch_training.py";
  const auto torch = [&](const char* variant) {
    return fmt::format("timeout -k 10 {} {} '{}' --variant {} --math-mode {} {}", options.timeLimit,
                       options.python, script.string(), variant,
                       nameOf(defaultMathMode(Device::parse(options.device))), commonOptions(options));
  };
  std::vector<Arm> arms{{kEager, torch("eager")},
                        {kCompiled, torch("compile")},
                        {kCaptured, torch("graph")},
                        {kBoth, torch("compiled-graph")}};
  for (const int workers : {1, 2, 4, 8})
    if (workers == 1 || options.network == "convnet") arms.push_back(musterArm(options, workers));
  return arms;
}

/// The fastest of PyTorch's variants with graphs, by their medians.
const Arm& bestGraphed(const std::vector<Arm>& arms) {
  const Arm* best = &find(arms, kCompiled);
  for (const char* name : {kCaptured, kBoth})
    if (const Arm& arm = find(arms, name);
        arm.median("samplesPerSecond").value_or(0) > best->median("samplesPerSecond").value_or(0))
      best = &arm;
  return *best;
}

std::string timesText(std::optional<double> times) {
  return times ? fmt::format("{:.2f} x", *times) : "-";
}

/// The problem with our steps, from the first round that has one; the log names the reason.
std::string stepsAtFault(const Arm& arm) {
  if (recordingIsOff()) return "";
  for (const auto& result : arm.results) {
    if (!result.contains("launchedSteps")) continue;
    const auto number = [&](const char* field) { return result.at(field).to_number<std::int64_t>(); };
    const muster::detail::StepCounts steps{.launched = number("launchedSteps"),
                                           .unrecorded = number("unrecordedSteps"),
                                           .first = number("firstSteps")};
    if (!steps.recorded())
      return fmt::format("only {} of {} steps were launched as graphs", steps.launched, steps.all());
  }
  return "";
}

void printRow(std::FILE* out, const Arm& arm, const std::vector<Arm>& arms, bool isConvnet) {
  const auto samples = arm.sorted("samplesPerSecond");
  if (samples.empty()) {
    fmt::print(out, "{:<28} {}\n", arm.name, arm.failure.empty() ? "not measured yet" : arm.failure);
    return;
  }
  const double median = *arm.median("samplesPerSecond");
  fmt::print(out, "{:<28} {:>10.0f} {:>21}", arm.name, median,
             fmt::format("{:.0f} - {:.0f}", samples.front(), samples.back()));
  fmt::print(out, " {:>10} {:>9} {:>15}", isConvnet ? fmt::format("{:.3f}", 60000 / median) : "-",
             timesText(ratio(arm, find(arms, kEager))), timesText(ratio(arm, bestGraphed(arms))));
  if (isConvnet) fmt::print(out, " {:>11}", timesText(ratio(arm, find(arms, workersName(1)))));
  if (const auto* layout = arm.results.front().if_contains("layout"))
    fmt::print(out, "  {}", layout->as_string().c_str());
  if (const auto fault = stepsAtFault(arm); !fault.empty()) fmt::print(out, "  {}", fault);
  fmt::print(out, "{}\n", arm.failure.empty() ? "" : "  then: " + arm.failure);
}

void printGoal(std::FILE* out, const char* text, std::optional<double> times, double goal) {
  fmt::print(out, "{:<56} goal {:.1f} x, measured {}: {}\n", text, goal, timesText(times),
             !times           ? "no figure"
             : *times >= goal ? "reached"
                              : "missed");
}

void printTable(std::FILE* out, const std::vector<Arm>& arms, const Options& options) {
  std::size_t rounds = 0;
  for (const auto& arm : arms) rounds = std::max(rounds, arm.results.size());
  const bool isConvnet = options.network == "convnet";
  const Device device = Device::parse(options.device);
  fmt::print(out, "{}, batch {}, on {}, products in {}; medians of {} round{} of {} s after warm-up\n",
             isConvnet ? "MNIST convnet, Nesterovs, L2" : "ResNet-18 on images 1x28x28, plain SGD",
             options.batch, propertiesOf(device).name, nameOf(defaultMathMode(device)), rounds,
             rounds == 1 ? "" : "s", options.seconds);
  if (isConvnet)
    fmt::print(out,
               "muster: all workers on this device, averaging every {} iterations, images on it as bytes\n",
               options.averagingFrequency);
  for (const auto& arm : arms)
    if (!arm.results.empty() && arm.results.front().contains("about")) {
      fmt::print(out, "{}\n", arm.results.front().at("about").as_string().c_str());
      break;
    }
  fmt::print(out, "\n{:<28} {:>10} {:>21} {:>10} {:>9} {:>15}", "", "samples/s", "least - most", "s an epoch",
             "vs eager", "vs best graphed");
  fmt::print(out, "{}\n", isConvnet ? " vs 1 worker" : "");
  for (const auto& arm : arms) printRow(out, arm, arms, isConvnet);
  if (!isConvnet) return;
  fmt::print(out, "An epoch has 60000 images.\n\n");
  const Arm& one = find(arms, workersName(1));
  printGoal(out, "one worker against PyTorch eager", ratio(one, find(arms, kEager)), 5);
  printGoal(out, "one worker against PyTorch's best graphed variant", ratio(one, bestGraphed(arms)), 1.3);
  printGoal(out, "8 workers against one", ratio(find(arms, workersName(8)), one), 3);
}

/// Writes the table so far atomically.
void keepTable(const std::vector<Arm>& arms, const Options& options) {
  if (options.tableFile.empty()) return;
  const std::string unfinished = options.tableFile + ".new";
  std::FILE* const out = std::fopen(unfinished.c_str(), "w");
  if (!out) throw std::runtime_error("cannot write " + unfinished);
  printTable(out, arms, options);
  std::fclose(out);
  std::filesystem::rename(unfinished, options.tableFile);
}

/// @return whether all our measurements succeeded and recorded their steps.
bool compareAll(const Options& options) {
  auto arms = makeArms(options);
  const auto begin = Clock::now();
  double before = 0;  // seconds until the last round began
  measureInTurns(
      arms, options.rounds, [&] { keepTable(arms, options); },
      [&] {
        const double now = secondsSince(begin), last = now - std::exchange(before, now);
        return options.budget == 0 || now + last <= options.budget;
      });
  printTable(stdout, arms, options);
  if (!options.jsonFile.empty()) writeJson({{options.network, arms}}, options.jsonFile);
  return std::ranges::all_of(arms, [](const Arm& arm) {
    return !arm.name.starts_with("muster") || (arm.failure.empty() && stepsAtFault(arm).empty());
  });
}

/// Traces the GPU in the last of three epochs.
template <typename Fit>
TraceSummary traced(KernelTrace& trace, Fit fit) {
  fit(2);
  trace.take();
  fit(1);
  auto summary = summarise(trace.take());
  if (summary.rows.empty()) throw std::runtime_error("CUPTI has seen nothing");
  return summary;
}

/// Shows what takes the time of steps, by number of workers; without CUPTI, only their duration.
void traceTraining(const Options& options) {
  std::vector<Arm> untraced;
  for (const int workers : options.traceWorkers) untraced.push_back(musterArm(options, workers));
  measureInTurns(untraced, 1);  // before this process uses the GPU
  requireAll(untraced);
  std::optional<KernelTrace> trace;
  std::string whyNot;
  try {
    trace.emplace();
  } catch (const std::exception& error) {
    whyNot = error.what();
  }
  for (const int workers : options.traceWorkers) {
    const double samples = *find(untraced, workersName(workers)).median("samplesPerSecond");
    const double seconds = static_cast<double>(options.batch) / samples;  // of a step
    fmt::print("{}{} of {}, batch {}: {:.0f} samples/s without tracing; a step of any of them:\n",
               workers == options.traceWorkers.front() ? "" : "\n", workersName(workers), options.network,
               options.batch, samples);
    if (!trace) {
      fmt::print("{:.1f} us; its kernels: skipped: {}\n", 1e6 * seconds, whyNot);
    } else if (options.network == "convnet") {
      ConvnetTraining training(options, workers);
      const auto fit = [&](std::int64_t epochs) { training.wrapper.fit(training.data, epochs); };
      fmt::print("{}", describe(traced(*trace, fit), kBatches, seconds));
    } else {
      ResnetTraining training(options);
      const auto fit = [&](std::int64_t epochs) { training.model.fit(training.data, epochs); };
      fmt::print("{}", describe(traced(*trace, fit), kResnetBatches, seconds));
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  muster::showProgress(false);
  namespace po = boost::program_options;
  Options options;
  po::options_description description("Training speed on a GPU, beside PyTorch where Python has it");
  auto add = description.add_options();
  add("network", po::value(&options.network), "convnet or resnet18 [convnet]");
  add("device", po::value(&options.device), "where all workers are [cuda:0]");
  add("batch", po::value(&options.batch), "images per step [128; 256 of ResNet-18]");
  add("averaging-frequency", po::value(&options.averagingFrequency), "iterations between merges [3]");
  add("seconds", po::value(&options.seconds), "each measurement takes, after its warm-up [2]");
  add("rounds", po::value(&options.rounds), "measurements of each arm, in turns [5]");
  add("time-limit", po::value(&options.timeLimit), "seconds after which a measurement has failed [300]");
  add("python", po::value(&options.python), "runs the PyTorch variants [python3]");
  add("budget", po::value(&options.budget), "seconds after which no other round is begun [none]");
  add("json", po::value(&options.jsonFile), "write all measurements to this file");
  add("table", po::value(&options.tableFile), "write the table to this file, too, after each measurement");
  add("trace", "only show where the time of the steps goes, kernel by kernel");
  add("trace-workers", po::value(&options.traceWorkers)->multitoken(), "of these [1 2 4 8; 1 of ResNet-18]");
  add("details", "of an arm: what each layer is computed by, and all that is logged, instead of JSON");
  add("arm", po::value(&options.arm), "measure this many workers, and print JSON");
  po::variables_map given;
  if (!readCommandLine(argc, argv, description, given)) return 0;
  if (options.network != "convnet" && options.network != "resnet18")
    throw std::invalid_argument("network: expected convnet or resnet18, got " + options.network);
  if (options.rounds < 1 || options.seconds <= 0 || options.timeLimit < 1 || options.budget < 0)
    throw std::invalid_argument("rounds, seconds, time-limit and budget must be positive");
  if (options.batch == 0) options.batch = options.network == "convnet" ? 128 : 256;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (given.contains("trace")) {
    if (options.network != "convnet") options.traceWorkers = {1};
    traceTraining(options);
    return 0;
  }
  if (options.arm == 0) return compareAll(options) ? 0 : 1;
  if (given.contains("details")) return describeArm(options) ? 0 : 1;
  printResult(measureArm(options));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "gpu_end_to_end: {}\n", error.what());
  return 1;
}
