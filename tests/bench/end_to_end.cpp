// Training speed, end to end, beside libtorch. First the MNIST convnet: workers, queues, merging and all;
// then ResNet-18 of one worker, on images of 28x28. Each measurement is a process of its own, this program
// run again with --arm, or the libtorch program beside it; they take turns, so that a machine that changes
// its pace changes it for all. Prints tables of medians and ratios.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "muster/core/nn/models/resnet18.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/bench/arms.h"
#include "tests/bench/command_line.h"
#include "tests/bench/networks.h"
#include "tests/bench/peak_memory.h"
#include "tests/bench/timing.h"

namespace {

using namespace muster;
using namespace muster::bench;

struct Options {
  int workers = 1, threads = 1;
  std::int64_t batch = 128, averagingFrequency = 3, resnetBatch = 64;
  std::string network = "all";
  double seconds = 6;
  int rounds = 5;
  std::string arm, jsonFile;
};

/// One measurement of our own, as a line of JSON.
void measure(const Options& options) {
  MultiLayerNetwork model(convnet());
  model.init();
  const std::int64_t batchesPerEpoch = 30 * options.workers;
  auto data = randomImages(batchesPerEpoch * options.batch, options.batch);
  auto wrapper = ParallelWrapper::Builder(model)
                     .workers(options.workers)
                     .threadsPerWorker(options.threads)
                     .averagingFrequency(options.averagingFrequency)
                     .prefetchBuffer(24)
                     .build();
  wrapper.fit(data);  // threads, replicas and programs are made here
  auto begin = Clock::now();
  wrapper.fit(data, 2);
  const auto epochs =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(2 * options.seconds / secondsSince(begin)));
  begin = Clock::now();
  wrapper.fit(data, epochs);
  const double seconds = secondsSince(begin);

  std::chrono::nanoseconds merging{0}, data_{0}, barrier{0}, computing{0};
  for (const auto& times : wrapper.workerTimes()) {
    merging += times.merging;
    data_ += times.waitingForData;
    barrier += times.waitingForWorkers;
    computing += times.computing;
  }
  const double total = static_cast<double>((merging + data_ + barrier + computing).count());
  fmt::print(
      "{{\"samplesPerSecond\": {:.1f}, \"mergeShare\": {:.6f}, \"dataWaitShare\": {:.6f}, "
      "\"barrierWaitShare\": {:.6f}, \"peakMemoryBytes\": {}}}\n",
      static_cast<double>(epochs * batchesPerEpoch * options.batch) / seconds,
      static_cast<double>(merging.count()) / total, static_cast<double>(data_.count()) / total,
      static_cast<double>(barrier.count()) / total, peakMemoryBytes());
}

/// One measurement of our ResNet-18, likewise.
void measureResnet18(const Options& options) {
  auto cores = availableCores();
  cores.resize(std::min(cores.size(), static_cast<std::size_t>(options.threads)));
  Context context(Device::cpu(), {.threads = options.threads, .cores = cores});
  auto configuration = resnet18(10);
  configuration.updater = Sgd{.learningRate = 0.01};
  ComputationGraph model(configuration, context);
  model.init();
  constexpr std::int64_t kBatches = 8;
  auto data = randomImages(kBatches * options.resnetBatch, options.resnetBatch);
  model.fit(data);  // the program is made here
  auto begin = Clock::now();
  model.fit(data);
  const auto epochs =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(options.seconds / secondsSince(begin)));
  begin = Clock::now();
  model.fit(data, epochs);
  fmt::print("{{\"samplesPerSecond\": {:.1f}, \"peakMemoryBytes\": {}}}\n",
             static_cast<double>(epochs * kBatches * options.resnetBatch) / secondsSince(begin),
             peakMemoryBytes());
}

std::vector<Arm> makeArms(const Options& options, const std::filesystem::path& self) {
  const auto ours = [&](std::string_view arm) {
    return fmt::format("'{}' --arm {} --batch {} --averaging-frequency {} --seconds {}", self.string(), arm,
                       options.batch, options.averagingFrequency, options.seconds);
  };
  std::vector<Arm> arms;
  const auto torch = self.parent_path() / "libtorch_convnet";
  const bool compare = std::filesystem::exists(torch);
  if (compare)
    for (const auto& [name, flags] : std::vector<std::pair<std::string, std::string>>{
             {"libtorch, 1 worker", "--workers 1"},
             {"libtorch, 2 workers", "--workers 2"},
             {"libtorch, 1 worker, 2 threads", "--workers 1 --threads 2"}})
      arms.push_back(
          {name,
           fmt::format("'{}' --channels-last --batch {} --averaging-frequency {} --seconds {} {}",
                       torch.string(), options.batch, options.averagingFrequency, options.seconds, flags),
           ""});
  arms.push_back({"muster, 1 worker", ours("1x1"), compare ? "libtorch, 1 worker" : ""});
  arms.push_back({"muster, 2 workers", ours("2x1"), compare ? "libtorch, 2 workers" : ""});
  arms.push_back(
      {"muster, 1 worker, 2 threads", ours("1x2"), compare ? "libtorch, 1 worker, 2 threads" : ""});
  return arms;
}

std::vector<Arm> makeResnet18Arms(const Options& options, const std::filesystem::path& self) {
  const auto torch = self.parent_path() / "libtorch_resnet18";
  const bool compare = std::filesystem::exists(torch);
  std::vector<Arm> arms;
  for (const int threads : {1, 2}) {
    const auto baseline = fmt::format("libtorch, {} thread{}", threads, threads == 1 ? "" : "s");
    if (compare)
      arms.push_back({baseline,
                      fmt::format("'{}' --channels-last --batch {} --seconds {} --threads {}", torch.string(),
                                  options.resnetBatch, options.seconds, threads),
                      ""});
    arms.push_back({fmt::format("muster, {} thread{}", threads, threads == 1 ? "" : "s"),
                    fmt::format("'{}' --network resnet18 --arm 1x{} --resnet-batch {} --seconds {}",
                                self.string(), threads, options.resnetBatch, options.seconds),
                    compare ? baseline : ""});
  }
  return arms;
}

std::string ratioText(const Arm& arm, const std::vector<Arm>& arms) {
  return arm.baseline.empty() ? "-" : fmt::format("{:.2f} x", ratio(arm, find(arms, arm.baseline)).value());
}

void printResnet18(const std::vector<Arm>& arms, const Options& options) {
  fmt::print("\nResNet-18, images 1x28x28, batch {}, plain SGD; medians of {} rounds of {:.0f} s\n\n",
             options.resnetBatch, options.rounds, options.seconds);
  fmt::print("{:<30} {:>10} {:>12} {:>9}\n", "", "samples/s", "vs libtorch", "memory");
  for (const auto& arm : arms)
    fmt::print("{:<30} {:>10.1f} {:>12} {:>5.0f} MiB\n", arm.name, arm.median("samplesPerSecond").value(),
               ratioText(arm, arms), arm.median("peakMemoryBytes").value() / (1 << 20));
}

void print(const std::vector<Arm>& arms, const Options& options) {
  fmt::print("\nMNIST convnet, batch {}, averaging every {} iterations; medians of {} rounds of {:.0f} s\n\n",
             options.batch, options.averagingFrequency, options.rounds, options.seconds);
  fmt::print("{:<30} {:>10} {:>12} {:>9} {:>11} {:>11} {:>9}\n", "", "samples/s", "vs libtorch", "merging",
             "data wait", "peers wait", "memory");
  for (const auto& arm : arms) {
    const auto percent = [&](const char* field) {
      const auto value = arm.median(field);
      return value ? fmt::format("{:.2f} %", 100 * *value) : std::string("-");
    };
    fmt::print("{:<30} {:>10.0f} {:>12} {:>9} {:>11} {:>11} {:>5.0f} MiB\n", arm.name,
               arm.median("samplesPerSecond").value(), ratioText(arm, arms), percent("mergeShare"),
               percent("dataWaitShare"), percent("barrierWaitShare"),
               arm.median("peakMemoryBytes").value() / (1 << 20));
  }
  fmt::print("\nmuster, 2 workers / 1 worker: {:.2f}\n",
             ratio(find(arms, "muster, 2 workers"), find(arms, "muster, 1 worker")).value());
}

void compareAll(const Options& options, const char* program) {
  const auto self = std::filesystem::canonical(program);
  std::map<std::string, std::vector<Arm>> tables;
  if (options.network != "resnet18") {
    auto& arms = tables["convnet"] = makeArms(options, self);
    measureInTurns(arms, options.rounds);
    requireAll(arms);
    print(arms, options);
  }
  if (options.network != "convnet") {
    auto& arms = tables["resnet18"] = makeResnet18Arms(options, self);
    measureInTurns(arms, options.rounds);
    requireAll(arms);
    printResnet18(arms, options);
  }
  if (!options.jsonFile.empty()) writeJson(tables, options.jsonFile);
}

}  // namespace

int main(int argc, char** argv) try {
  namespace po = boost::program_options;
  Options options;
  po::options_description description(
      "Training speed of the MNIST convnet and of ResNet-18, beside libtorch where it was built");
  auto add = description.add_options();
  add("seconds", po::value(&options.seconds), "each measurement takes [6]");
  add("rounds", po::value(&options.rounds), "measurements of each arm, in turns [5]");
  add("network", po::value(&options.network), "convnet, resnet18 or all [all]");
  add("batch", po::value(&options.batch), "images a step of the convnet [128]");
  add("resnet-batch", po::value(&options.resnetBatch), "images a step of ResNet-18 [64]");
  add("averaging-frequency", po::value(&options.averagingFrequency), "iterations between merges [3]");
  add("json", po::value(&options.jsonFile), "write all measurements to this file");
  add("arm", po::value(&options.arm), "measure one arm, WORKERSxTHREADS, and print JSON");
  po::variables_map given;
  if (!readCommandLine(argc, argv, description, given)) return 0;
  if (options.rounds < 1 || options.seconds <= 0)
    throw std::invalid_argument("rounds and seconds must be positive");
  if (options.network != "convnet" && options.network != "resnet18" && options.network != "all")
    throw std::invalid_argument("network: expected convnet, resnet18 or all, got " + options.network);
  if (options.arm.empty()) {
    compareAll(options, "/proc/self/exe");
  } else {
    if (std::sscanf(options.arm.c_str(), "%dx%d", &options.workers, &options.threads) != 2)
      throw std::invalid_argument("arm: expected WORKERSxTHREADS, got " + options.arm);
    if (options.network == "resnet18")
      measureResnet18(options);
    else
      measure(options);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "end_to_end: {}\n", error.what());
  return 1;
}
