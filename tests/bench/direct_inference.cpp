#include "tests/bench/direct_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/models/lenet.h"
#include "muster/datasets/cache.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/mnist.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/bench/arms.h"
#include "tests/bench/fixed_numbers.h"
#include "tests/bench/machine.h"
#include "tests/bench/operations.h"
#include "tests/bench/peak_memory.h"
#include "tests/bench/timing.h"

namespace muster::bench {

namespace {

constexpr std::int64_t kImages = 1024;         // that `output` computes in turns
constexpr std::int64_t kTestImages = 10'000;   // of MNIST
constexpr std::int64_t kEvaluatedBatch = 128;  // images

struct Subject {
  std::string name, title;
  double operations;  // of an image
  MultiLayerConfiguration configuration;
};

std::vector<Subject> subjects() {
  return {{"lenet", "LeNet",
           convolution(1, 6, 5, 28) + convolution(6, 16, 5, 10) + product(400, 120) + product(120, 84) +
               product(84, 10),
           lenet(10)},
          {"convnet", "The convnet of the MNIST example",
           convolution(1, 20, 5, 24) + convolution(20, 50, 5, 8) + product(800, 500) + product(500, 10),
           convnet(10)}};
}

Subject subject(const std::string& name) {
  for (auto& one : subjects())
    if (one.name == name) return one;
  throw std::invalid_argument("there is no network " + name + ": use lenet or convnet");
}

/// The same parameters as in libtorch_output.cpp.
void setParameters(MultiLayerNetwork& model) {
  auto& block = model.block(BlockKind::Parameters);
  for (const auto& segment : block.segments->segments) {
    const Tensor values = block.segment(segment);
    fillParameters(values.data<float>(), values.elements(), segment.shape[0]);
  }
}

/// A number that differs if the outputs [N, classes] do: the mean over the rows of the expected class.
double meanClass(const Tensor& outputs) {
  double sum = 0;
  for (std::int64_t i = 0; i < outputs.elements(); ++i)
    sum += static_cast<double>(outputs.data<float>()[i]) * static_cast<double>(i % outputs.shape()[1]);
  return sum / static_cast<double>(outputs.shape()[0]);
}

struct TestImages {
  std::string name;
  ImageSetIterator images;
};

TestImages testImages() {
  try {
    return {"MNIST's test images",
            MnistDataSetIterator(kEvaluatedBatch, /*train=*/false, 123, {.allowDownload = false})};
  } catch (const DownloadError&) {
    return {"generated digits, because MNIST is not on this machine",
            GeneratedDigitsIterator(kEvaluatedBatch, kTestImages, 20, /*train=*/false)};
  }
}

std::filesystem::path thisProgram() {
  return std::filesystem::canonical("/proc/self/exe");
}

Arm ownArm(const std::string& name, const std::string& flags, const DirectOptions& options) {
  return {
      .name = name,
      .command = fmt::format("'{}' --arm {} --seconds {}", thisProgram().string(), flags, options.seconds)};
}

/// `output` of one network, both libraries in turns.
std::vector<Arm> outputArms(const Subject& load, const DirectOptions& options) {
  const auto torch = thisProgram().parent_path() / "libtorch_output";
  std::vector<Arm> arms{ownArm("machine, 1 thread", "machine --workers 1", options)};
  for (const int batch : {1, 128}) {
    const auto name = fmt::format("batch {}", batch);
    const auto flags = fmt::format("--network {} --batch {}", load.name, batch);
    auto ours = ownArm("muster, " + name, "output " + flags, options);
    if (std::filesystem::exists(torch)) {
      ours.baseline = "libtorch, " + name;
      arms.push_back({.name = ours.baseline,
                      .command = fmt::format("'{}' {} --images {} --seconds {}", torch.string(), flags,
                                             kImages, options.seconds)});
    }
    arms.push_back(std::move(ours));
  }
  return arms;
}

std::vector<Arm> evaluateArms(const DirectOptions& options) {
  std::vector<Arm> arms;
  for (const int workers : {1, 2}) {
    if (static_cast<std::size_t>(workers) > availableCores().size()) continue;
    const char* const plural = workers == 1 ? "" : "s";
    const auto flags = fmt::format("--workers {}", workers);
    arms.push_back(ownArm(fmt::format("machine, {} thread{}", workers, plural), "machine " + flags, options));
    arms.push_back(ownArm(fmt::format("muster, {} worker{}", workers, plural), "evaluate " + flags, options));
  }
  return arms;
}

/// @throws std::runtime_error if both libraries computed different outputs.
void requireSameOutputs(const Subject& load, const std::vector<Arm>& arms) {
  for (const auto& arm : arms) {
    if (arm.baseline.empty()) continue;
    const double ours = arm.median("meanClass").value();
    const double theirs = find(arms, arm.baseline).median("meanClass").value();
    if (!(std::abs(ours - theirs) < 1e-4))
      throw std::runtime_error(
          fmt::format("{}, {}: the mean class is {}, libtorch's is {}", load.title, arm.name, ours, theirs));
  }
}

/// The part of the table for all arms but the machine's. @param operations  of an image
void printArms(const std::vector<Arm>& arms, double operations) {
  for (const auto& arm : arms)
    if (arm.name.starts_with("machine"))
      fmt::print("{}: {:.0f} GFLOP/s\n", arm.name, 1e-9 * arm.median("operationsPerSecond").value());
  fmt::print("\n{:<28} {:>10} {:>10} {:>9} {:>12} {:>12}\n", "", "samples/s", "us each", "of peak",
             "vs libtorch", "memory");
  for (const auto& arm : arms) {
    if (arm.name.starts_with("machine")) continue;
    const auto& machine =
        find(arms, arm.name.ends_with("2 workers") ? "machine, 2 threads" : "machine, 1 thread");
    const double rate = arm.median("samplesPerSecond").value();
    const auto share = medianOf(ratios(arm, "samplesPerSecond", machine, "operationsPerSecond"));
    const auto speedUp = arm.baseline.empty() ? std::nullopt : ratio(arm, find(arms, arm.baseline));
    fmt::print("{:<28} {:>10.0f} {:>10.2f} {:>7.0f} % {:>12} {:>8.0f} MiB\n", arm.name, rate, 1e6 / rate,
               100 * operations * share, speedUp ? fmt::format("{:.2f} x", *speedUp) : "-",
               arm.median("peakMemoryBytes").value() / (1 << 20));
  }
  fmt::print("\n");
  std::fflush(stdout);
}

std::string rounds(const DirectOptions& options) {
  return fmt::format("medians of {} rounds of {:g} s", options.rounds, options.seconds);
}

}  // namespace

void measureOutput(const std::string& network, std::int64_t batch, double seconds) {
  require(batch >= 1 && batch <= kImages, "batch: expected 1 to {}, got {}", kImages, batch);
  Context context(Device::cpu(), {.cores = {availableCores().front()}});
  MultiLayerNetwork model(subject(network).configuration, context);
  model.init();
  setParameters(model);
  std::vector<Tensor> batches;
  std::uint64_t next = 0;
  for (std::int64_t i = 0; i < kImages / batch; ++i) {
    batches.push_back(Tensor::empty({batch, 1, 28, 28}));
    for (auto& pixel : std::span(batches.back().data<float>(), batches.back().elements()))
      pixel = fixedNumber(next++);
  }
  const auto output = [&](std::int64_t call) {
    return model.output(batches[static_cast<std::size_t>(call) % batches.size()]);
  };
  const double calls = callsPerSecond(seconds, output);
  fmt::print("{{\"samplesPerSecond\": {:.1f}, \"meanClass\": {:.6f}, \"peakMemoryBytes\": {}}}\n",
             calls * static_cast<double>(batch), meanClass(output(0)), peakMemoryBytes());
}

void measureEvaluate(int workers, double seconds) {
  auto data = testImages();
  MultiLayerNetwork model(convnet());
  model.init();
  auto wrapper = ParallelWrapper::Builder(model).workers(workers).build();
  const double calls = callsPerSecond(seconds, [&](std::int64_t) {
    if (wrapper.evaluate(data.images).examples() != kTestImages)
      throw std::runtime_error("evaluate did not count all images");
  });
  fmt::print("{{\"samplesPerSecond\": {:.1f}, \"data\": \"{}\", \"peakMemoryBytes\": {}}}\n",
             calls * static_cast<double>(kTestImages), data.name, peakMemoryBytes());
}

void measurePeak(int threads, double seconds) {
  fmt::print("{{\"operationsPerSecond\": {:.0f}}}\n", measureMachine(threads, seconds).operationsPerSecond);
}

void compareDirect(const DirectOptions& options) {
  std::map<std::string, std::vector<Arm>> tables;
  const auto measure = [&](const std::string& table, std::vector<Arm> arms) -> const std::vector<Arm>& {
    measureInTurns(arms, options.rounds);
    requireAll(arms);
    const auto& kept = tables[table] = std::move(arms);
    if (!options.jsonFile.empty()) writeJson(tables, options.jsonFile);
    return kept;
  };
  for (const auto& load : subjects()) {
    if (load.title.find(options.network) == std::string::npos) continue;
    if (options.output) {
      const auto& arms = measure(load.name + ", output", outputArms(load, options));
      requireSameOutputs(load, arms);
      fmt::print("{}, output() on one thread; {}\n", load.title, rounds(options));
      printArms(arms, load.operations);
    }
    if (options.evaluate && load.name == "convnet") {
      const auto& arms = measure(load.name + ", evaluate", evaluateArms(options));
      fmt::print("{}, evaluate() on {}, {} in batches of {}; {}\n", load.title,
                 std::string(arms[1].results.front().at("data").as_string()), kTestImages, kEvaluatedBatch,
                 rounds(options));
      printArms(arms, load.operations);
    }
  }
}

}  // namespace muster::bench
