// Measures `output` on one thread beside libtorch, `evaluate` with workers, and how many samples per second
// ParallelInference answers for many callers, with their waiting times. `inference --help` lists the options.

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "muster/core/nn/layers.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/models/lenet.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/inference/parallel_inference.h"
#include "tests/bench/command_line.h"
#include "tests/bench/direct_inference.h"
#include "tests/bench/timing.h"

using namespace muster;
using namespace muster::bench;

namespace {

struct Options {
  int workers = 2, callers = 64, rounds = 5;
  std::int64_t limit = 32;
  double seconds = 2;
  std::string network = {}, only = {};  ///< only names that contain this text
};

/// Results of one way to compute in one round.
struct Measured {
  double samplesPerSecond = 0;
  double cpuMicroseconds = 0;             ///< per sample, all threads; not disturbed by other programs
  std::vector<double> milliseconds = {};  ///< of each call
};

/// Calls `call` from several threads for some seconds.
/// @param call  takes the number of the thread. @param samples  samples per call
Measured measure(int threads, std::int64_t samples, double seconds, const std::function<void(int)>& call) {
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> calls{0};
  std::mutex mutex;
  Measured all;
  std::vector<std::jthread> callers;
  const auto begin = Clock::now();
  const double cpuBefore = processorSeconds();
  for (int t = 0; t < threads; ++t)
    callers.emplace_back([&, t] {
      std::vector<double> times;
      while (!stop) {
        const auto before = Clock::now();
        call(t);
        times.push_back(1000 * secondsSince(before));
        ++calls;
      }
      const std::scoped_lock lock(mutex);
      all.milliseconds.insert(all.milliseconds.end(), times.begin(), times.end());
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto counted = calls.load();
  all.samplesPerSecond = static_cast<double>(counted * samples) / secondsSince(begin);
  all.cpuMicroseconds = 1e6 * (processorSeconds() - cpuBefore) / static_cast<double>(counted * samples);
  stop = true;
  callers.clear();
  std::ranges::sort(all.milliseconds);
  return all;
}

/// One way to compute, created and destroyed in each round.
struct Arm {
  std::string name;
  std::function<Measured()> measure;
  std::vector<Measured> rounds = {};

  double median(double Measured::*value) const {
    std::vector<double> values;
    for (const auto& round : rounds) values.push_back(round.*value);
    return medianOf(values);
  }
  double rate() const { return median(&Measured::samplesPerSecond); }
  /// The latency within which this share of the calls was answered; the median over the rounds.
  double milliseconds(double share) const {
    std::vector<double> times;
    for (const auto& round : rounds)
      times.push_back(round.milliseconds[static_cast<std::size_t>(
          share * static_cast<double>(round.milliseconds.size() - 1))]);
    return medianOf(times);
  }
};

std::vector<Arm> armsOf(MultiLayerNetwork& model, const Options& o) {
  const Tensor one = Tensor::zeros({1, 1, 28, 28}), full = Tensor::zeros({o.limit, 1, 28, 28});
  Batch example;
  example.features.push_back({"image", one});
  const auto inference = [=, &model](InferenceMode mode, int callers) {
    return [=, &model] {
      ParallelInference served(model, {.workers = o.workers,
                                       .mode = mode,
                                       .batchLimit = o.limit,
                                       .queueLimit = o.callers,
                                       .example = example});
      return measure(callers, 1, o.seconds, [&](int) { served.output(one); });
    };
  };
  // Each caller has its own replica, without a queue: the machine's peak.
  const auto alone = [=, &model] {
    ParallelInference served(model,
                             {.workers = o.workers, .mode = InferenceMode::InPlace, .queueLimit = o.callers});
    for (int w = 0; w < o.workers; ++w) served.output(full);
    return measure(o.workers, o.limit, o.seconds, [&](int) { served.output(full); });
  };
  const auto locked = [=, &model](int threads) {
    return [=, &model] {
      std::mutex mutex;
      return measure(threads, 1, o.seconds, [&](int) {
        const std::scoped_lock lock(mutex);
        model.output(one);
      });
    };
  };
  return {{fmt::format("{} threads, output() of {}", o.workers, o.limit), alone},
          {fmt::format("{} callers, batched", o.callers), inference(InferenceMode::Batched, o.callers)},
          {fmt::format("{} callers, sequential", o.callers), inference(InferenceMode::Sequential, o.callers)},
          {fmt::format("{} callers, in place", o.callers), inference(InferenceMode::InPlace, o.callers)},
          {fmt::format("{} callers, in place", o.workers), inference(InferenceMode::InPlace, o.workers)},
          {fmt::format("{} callers, one lock", o.callers), locked(o.callers)},
          {"1 caller, one lock", locked(1)}};
}

/// A network whose computing takes less time than a call: its rate is the largest that callers can reach.
MultiLayerConfiguration hardlyAnything() {
  return {.inputShape = {1, 28, 28},
          .layers = {MaxPool2d{.kernel = {1, 1}, .stride = {28, 28}}, Output{.classes = 2}}};
}

void compare(const std::string& name, const MultiLayerConfiguration& configuration, const Options& o) {
  if (name.find(o.network) == std::string::npos) return;
  MultiLayerNetwork model(configuration);
  model.init();
  auto arms = armsOf(model, o);
  std::erase_if(arms, [&](const Arm& arm) { return arm.name.find(o.only) == std::string::npos; });
  if (arms.empty()) throw InvalidArgument(fmt::format("--only {}: no arm has this in its name", o.only));
  for (int round = 0; round < o.rounds; ++round)
    for (auto& arm : arms) arm.rounds.push_back(arm.measure());
  fmt::print("{}, {} workers, calls of one image, batch limit {}; medians of {} rounds of {} s\n", name,
             o.workers, o.limit, o.rounds, o.seconds);
  fmt::print("{:<28} {:>10} {:>10} {:>12} {:>10} {:>10} {:>10}\n", "", "samples/s", "of first", "CPU us each",
             "p50, ms", "p99, ms", "all, ms");
  for (const auto& arm : arms)
    fmt::print("{:<28} {:>10.0f} {:>9.0f}% {:>12.2f} {:>10.3f} {:>10.3f} {:>10.3f}\n", arm.name, arm.rate(),
               100 * arm.rate() / arms.front().rate(), arm.median(&Measured::cpuMicroseconds),
               arm.milliseconds(0.5), arm.milliseconds(0.99), arm.milliseconds(1));
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  namespace po = boost::program_options;
  Options o;
  DirectOptions direct;
  std::string part = "all", arm;
  std::int64_t batch = 128;
  po::options_description options("inference: speed of output and evaluate, and what many callers get");
  options.add_options()("part", po::value(&part)->default_value(part),
                        "output, evaluate, callers, or all of them")(
      "workers", po::value(&o.workers)->default_value(o.workers), "replicas that serve callers")(
      "callers", po::value(&o.callers)->default_value(o.callers), "threads that call")(
      "batch-limit", po::value(&o.limit)->default_value(o.limit), "examples of callers computed at once")(
      "rounds", po::value(&o.rounds)->default_value(o.rounds), "of all arms, in turns")(
      "seconds", po::value(&o.seconds)->default_value(o.seconds), "of each measurement")(
      "network", po::value(&o.network), "networks whose names have this in them, as LeNet or convnet")(
      "only", po::value(&o.only),
      "of callers, arms whose names have this in them, as batched, for a profiler")(
      "json", po::value(&direct.jsonFile), "write the measurements of output and evaluate to this file")(
      "arm", po::value(&arm), "measure output, evaluate or machine here, and print JSON")(
      "batch", po::value(&batch)->default_value(batch), "images per call of the arm output, at most 1024");
  po::variables_map given;
  if (!readCommandLine(argc, argv, options, given)) return 0;
  if (o.workers < 1 || o.rounds < 1 || o.seconds <= 0)
    throw InvalidArgument("workers, rounds and seconds must be positive");
  if (!arm.empty()) {
    if (arm == "output")
      measureOutput(o.network, batch, o.seconds);
    else if (arm == "evaluate")
      measureEvaluate(o.workers, o.seconds);
    else if (arm == "machine")
      measurePeak(o.workers, o.seconds);
    else
      throw InvalidArgument(fmt::format("arm: expected output, evaluate or machine, got {}", arm));
    return 0;
  }
  const bool all = part == "all";
  if (!all && part != "output" && part != "evaluate" && part != "callers")
    throw InvalidArgument(fmt::format("part: expected output, evaluate, callers or all, got {}", part));
  direct.seconds = o.seconds;
  direct.rounds = o.rounds;
  direct.network = o.network;
  direct.output = all || part == "output";
  direct.evaluate = all || part == "evaluate";
  compareDirect(direct);
  if (!all && part != "callers") return 0;
  compare("LeNet", lenet(10), o);
  compare("The convnet of the MNIST example", convnet(10), o);
  compare("A network that computes hardly anything", hardlyAnything(), o);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "inference: {}\n", error.what());
  return 2;
}
