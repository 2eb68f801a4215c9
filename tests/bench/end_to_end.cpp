// Compares end-to-end training speed, including workers, queues and merging, with libtorch. Each measurement
// is a separate process: this program with --arm, or the libtorch program. They take turns with a measurement
// of the machine's peak, so that changes of the machine's speed affect all. Prints tables of medians and
// ratios.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "muster/core/device/math_mode.h"
#include "muster/core/listeners/progress_listener.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/bench/arms.h"
#include "tests/bench/command_line.h"
#include "tests/bench/kernels.h"
#include "tests/bench/machine.h"
#include "tests/bench/peak_memory.h"
#include "tests/bench/slower.h"
#include "tests/bench/timing.h"
#include "tests/bench/workloads.h"

namespace {

using namespace muster;
using namespace muster::bench;

struct Options {
  std::string network = "all", isa = "all", kernels;
  std::int64_t batch = 0, averagingFrequency = 3;
  double seconds = 4;
  int rounds = 5;
  bool machineAlone = false;
  std::string arm, jsonFile, compareFile;
  MathMode mathMode = MathMode::Float32;
};

/// Bytes of a worker's memory that a merge reads and writes.
double mergedBytes(Network& network) {
  double bytes = 0;
  for (const auto& block : network.blocks())
    if (block.kind == BlockKind::Parameters) bytes += static_cast<double>(block.values.bytes());
  for (const auto& block : network.updaterState()) bytes += static_cast<double>(block.values.bytes());
  return bytes;
}

/// One measurement of our own, as a line of JSON.
void measure(const Options& options, int workers, int threads) {
  const auto& load = workload(options.network);
  const auto batch = options.batch ? options.batch : load.batch;
  Context context;
  const auto model = load.network(context);
  const std::int64_t batchesPerEpoch = load.batches * workers;
  auto data = load.data(batchesPerEpoch, batch);
  auto wrapper = ParallelWrapper::Builder(*model)
                     .workers(workers)
                     .threadsPerWorker(threads)
                     .averagingFrequency(options.averagingFrequency)
                     .prefetchBuffer(24)
                     .mathMode(options.mathMode)
                     .build();
  wrapper.fit(data);  // creates threads, replicas and programs
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
  const auto merges = static_cast<double>(
      epochs * ((load.batches + options.averagingFrequency - 1) / options.averagingFrequency));
  fmt::print(
      "{{\"samplesPerSecond\": {:.1f}, \"batch\": {}, \"mergeShare\": {:.6f}, \"dataWaitShare\": {:.6f}, "
      "\"barrierWaitShare\": {:.6f}, \"mergeBytesPerSecond\": {:.0f}, \"peakMemoryBytes\": {}}}\n",
      static_cast<double>(epochs * batchesPerEpoch * batch) / seconds, batch,
      static_cast<double>(merging.count()) / total, static_cast<double>(data_.count()) / total,
      static_cast<double>(barrier.count()) / total,
      2 * workers * mergedBytes(*model) * merges / (1e-9 * static_cast<double>(merging.count()) / workers),
      peakMemoryBytes());
}

std::string machineName(int threads) {
  return fmt::format("machine, {} thread{}", threads, threads == 1 ? "" : "s");
}

void printMachine(std::string_view name, double operationsPerSecond, double copyBytesPerSecond) {
  fmt::print("{}: {:.0f} GFLOP/s, copies {:.1f} GB/s (read and written)\n", name, 1e-9 * operationsPerSecond,
             1e-9 * copyBytesPerSecond);
}

/// Prints the peaks of one and two threads, as far as there are cores.
void printMachineAlone() {
  for (int threads = 1; threads <= std::min(2, static_cast<int>(availableCores().size())); ++threads) {
    const auto machine = measureMachine(threads, 1);
    printMachine(machineName(threads), machine.operationsPerSecond, machine.copyBytesPerSecond);
  }
  std::fflush(stdout);
}

void measureMachineAlone(int threads, double seconds) {
  const auto machine = measureMachine(threads, seconds);
  fmt::print(
      "{{\"operationsPerSecond\": {:.0f}, \"copyBytesPerSecond\": {:.0f}, "
      "\"operationsPerProcessorSecond\": {:.0f}, \"copyBytesPerProcessorSecond\": {:.0f}}}\n",
      machine.operationsPerSecond, machine.copyBytesPerSecond, machine.operationsPerProcessorSecond,
      machine.copyBytesPerProcessorSecond);
}

/// Environment variables that limit the instruction set of our process and libtorch's; empty: no limit.
std::string environment(std::string_view isa) {
  if (isa != "avx2") return {};
  return "MUSTER_MAX_CPU_ISA=avx2 ONEDNN_MAX_CPU_ISA=AVX2 DNNL_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 "
         "OPENBLAS_CORETYPE=Haswell ";
}

std::string threadsText(int threads) {
  return threads == 1 ? std::string() : fmt::format(", {} threads", threads);
}

std::vector<Arm> makeArms(const Workload& load, const Options& options, std::string_view isa,
                          const std::filesystem::path& self) {
  const auto torch = self.parent_path() / "libtorch_training";
  const bool compare = std::filesystem::exists(torch);
  const auto batch = options.batch ? options.batch : load.batch;
  const int cores = static_cast<int>(availableCores().size());
  std::vector<Arm> arms;
  for (const int threads : {1, 2})
    if (threads <= cores)
      arms.push_back({machineName(threads), fmt::format("{}'{}' --network machine --arm 1x{} --seconds 1",
                                                        environment(isa), self.string(), threads)});
  struct Shape {
    int workers, threads;
    std::int64_t frequency;
  };
  std::vector<Shape> shapes{{1, 1, options.averagingFrequency}, {2, 1, options.averagingFrequency}};
  if (load.convolutional) shapes.push_back({1, 2, options.averagingFrequency});
  if (load.name.starts_with("mlp")) shapes.insert(shapes.end(), {{2, 1, 10}, {2, 1, 1}});
  for (const auto& [workers, threads, frequency] : shapes) {
    if (workers * threads > cores) continue;
    const auto name =
        fmt::format("{} worker{}{}{}", workers, workers == 1 ? "" : "s", threadsText(threads),
                    frequency == options.averagingFrequency ? std::string()
                                                            : fmt::format(", merged every {}", frequency));
    const auto flags = fmt::format("--network {} --batch {} --averaging-frequency {} --seconds {}", load.name,
                                   batch, frequency, options.seconds);
    if (compare)
      arms.push_back(
          {"libtorch, " + name, fmt::format("{}'{}' {} --workers {} --threads {}", environment(isa),
                                            torch.string(), flags, workers, threads)});
    const auto ours =
        fmt::format("{}'{}' {} --arm {}x{}", environment(isa), self.string(), flags, workers, threads);
    const auto baseline = compare ? "libtorch, " + name : "";
    arms.push_back({"muster, " + name, ours, baseline});
    if (load.convolutional && isa != "avx2" && threads == 1 &&
        whyNoMathMode(Device::cpu(), MathMode::BFloat16).empty())
      arms.push_back({"muster in bf16, " + name, ours + " --math-mode bf16", baseline});
  }
  return arms;
}

/// The arm's share of the machine's peak; the median of the rounds.
std::optional<double> shareOf(const Arm& arm, const char* field, const std::vector<Arm>& arms,
                              const char* limit, double factor) {
  const bool two =
      arm.name.find("2 workers") != std::string::npos || arm.name.find("2 threads") != std::string::npos;
  const auto& machine = find(arms, two ? "machine, 2 threads" : "machine, 1 thread");
  const auto values = ratios(arm, field, machine, limit);
  if (values.empty()) return {};
  return factor * medianOf(values);
}

std::string percent(const std::optional<double>& share, int digits) {
  return share ? fmt::format("{:.{}f} %", 100 * *share, digits) : std::string("-");
}

void print(const Workload& load, const std::vector<Arm>& arms, const Options& options, std::string_view isa) {
  const auto batch = options.batch ? options.batch : load.batch;
  fmt::print("\n{}{}, batch {}, averaging every {} iterations; medians of {} rounds of {:g} s\n", load.title,
             isa == "avx2" ? ", with AVX2" : "", batch, options.averagingFrequency, options.rounds,
             options.seconds);
  for (const auto& arm : arms)
    if (arm.name.starts_with("machine"))
      printMachine(arm.name, arm.median("operationsPerSecond").value(),
                   arm.median("copyBytesPerSecond").value());
  fmt::print("\n{:<36} {:>10} {:>9} {:>8} {:>11} {:>8} {:>8} {:>10} {:>10} {:>9}\n", "", "samples/s",
             "us/batch", "of peak", "vs libtorch", "merging", "of copy", "data wait", "peers wait", "memory");
  for (const auto& arm : arms) {
    if (arm.name.starts_with("machine")) continue;
    const double rate = arm.median("samplesPerSecond").value();
    const auto speedUp = arm.baseline.empty() ? std::nullopt : ratio(arm, find(arms, arm.baseline));
    const bool merged = arm.name.find("2 workers") != std::string::npos;
    fmt::print("{:<36} {:>10.0f} {:>9.1f} {:>8} {:>11} {:>8} {:>8} {:>10} {:>10} {:>5.0f} MiB\n", arm.name,
               rate, 1e6 * static_cast<double>(batch) / rate,
               percent(shareOf(arm, "samplesPerSecond", arms, "operationsPerSecond", load.operations), 0),
               speedUp ? fmt::format("{:.2f} x", *speedUp) : "-", percent(arm.median("mergeShare"), 2),
               merged ? percent(shareOf(arm, "mergeBytesPerSecond", arms, "copyBytesPerSecond", 1), 0) : "-",
               percent(arm.median("dataWaitShare"), 2), percent(arm.median("barrierWaitShare"), 2),
               arm.median("peakMemoryBytes").value() / (1 << 20));
  }
  if (has(arms, "muster, 2 workers"))
    fmt::print("\nmuster, 2 workers / 1 worker: {:.2f}\n",
               ratio(find(arms, "muster, 2 workers"), find(arms, "muster, 1 worker")).value());
  for (const std::string workers : {"1 worker", "2 workers"})
    if (has(arms, "muster in bf16, " + workers))
      fmt::print("muster, {}, bf16 / float32: {:.2f}\n", workers,
                 ratio(find(arms, "muster in bf16, " + workers), find(arms, "muster, " + workers)).value());
  std::fflush(stdout);
}

/// Command lines of the Google Benchmark programs that have such kernels.
std::vector<std::string> kernelPrograms(const Options& options, const std::filesystem::path& self) {
  std::vector<std::string> programs;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(self.parent_path().parent_path())) {
    if (!entry.is_regular_file() || !entry.path().filename().string().ends_with("_bench")) continue;
    auto command = fmt::format("{}'{}' --benchmark_filter='{}'", environment(options.isa),
                               entry.path().string(), options.kernels);
    if (std::system((command + " --benchmark_list_tests 2>/dev/null | grep -q .").c_str()) == 0)
      programs.push_back(std::move(command));
  }
  std::ranges::sort(programs);
  if (programs.empty()) throw std::invalid_argument("kernels: no name matches " + options.kernels);
  return programs;
}

/// Measures the machine's peak of one thread before each program in each round.
std::vector<Arm> measureKernels(const Options& options, const std::filesystem::path& self) {
  const auto programs = kernelPrograms(options, self);
  const auto machine = fmt::format("{}'{}' --network machine --arm 1x1 --seconds 0.5",
                                   environment(options.isa), self.string());
  std::vector<Arm> kernels;
  for (int round = 0; round < options.rounds; ++round)
    for (const auto& program : programs) {
      const auto rates = printedJson(machine);
      fmt::print(stderr, "round {}/{}  {}\n", round + 1, options.rounds, program);
      addKernels(kernels,
                 printedJson(program + " --benchmark_format=json --benchmark_min_time=0.1 "
                                       "--benchmark_min_warmup_time=0.05"),
                 rates);
    }
  return kernels;
}

void compareAll(const Options& options, const std::optional<OldMeasurements>& old) {
  const auto self = std::filesystem::canonical("/proc/self/exe");
  std::map<std::string, std::vector<Arm>> tables;
  if (!options.kernels.empty()) {
    printKernels(tables["kernels"] = measureKernels(options, self));
    if (!options.jsonFile.empty()) writeJson(tables, options.jsonFile);
  }
  for (const auto& load : workloads()) {
    if (options.network != "all" && options.network != load.name) continue;
    for (const std::string isa : {"native", "avx2"}) {
      if (options.isa != "all" ? options.isa != isa : isa == "avx2" && !load.convolutional) continue;
      auto& arms = tables[load.name + (isa == "avx2" ? ", AVX2" : "")] = makeArms(load, options, isa, self);
      measureInTurns(arms, options.rounds);
      requireAll(arms);
      print(load, arms, options, isa);
      if (!options.jsonFile.empty()) writeJson(tables, options.jsonFile);
    }
  }
  if (old) old->print(tables);
}

}  // namespace

int main(int argc, char** argv) try {
  muster::showProgress(false);
  namespace po = boost::program_options;
  Options options;
  po::options_description description(
      "Training speed beside the machine's and, where it was built, libtorch's");
  std::vector<std::string> names;
  for (const auto& load : workloads()) names.push_back(load.name);
  auto add = description.add_options();
  const auto networks = fmt::format("{}, all or none [all]", fmt::join(names, ", "));
  add("network", po::value(&options.network), networks.c_str());
  add("kernels", po::value(&options.kernels),
      "first measure the kernels whose names match this regular expression, beside the machine's peak or its "
      "copies [none]");
  add("isa", po::value(&options.isa),
      "native, avx2 or all: the widest instructions, everybody held to AVX2, or both for networks that "
      "convolve [all]");
  add("seconds", po::value(&options.seconds), "each measurement takes [4]");
  add("rounds", po::value(&options.rounds), "measurements of each arm, in turns [5]");
  add("batch", po::value(&options.batch), "examples per step [each network's own]");
  add("averaging-frequency", po::value(&options.averagingFrequency), "iterations between merges [3]");
  add("json", po::value(&options.jsonFile), "write all measurements to this file");
  add("compare", po::value(&options.compareFile),
      "tell what is slower or faster than in this file of --json");
  add("machine", po::bool_switch(&options.machineAlone),
      "check the other options, print the machine's peak, and measure nothing else");
  add("arm", po::value(&options.arm), "measure one arm, WORKERSxTHREADS, and print JSON");
  std::string mathMode(nameOf(options.mathMode));
  add("math-mode", po::value(&mathMode), "of an arm: fp32, or bf16 where the CPU has it [fp32]");
  po::variables_map given;
  if (!readCommandLine(argc, argv, description, given)) return 0;
  options.mathMode = valueNamed<MathMode>("math-mode", mathMode);
  if (options.rounds < 1 || options.seconds <= 0 || options.batch < 0 || options.averagingFrequency < 1)
    throw std::invalid_argument("rounds, seconds, batch and averaging-frequency must be positive");
  if (options.isa != "native" && options.isa != "avx2" && options.isa != "all")
    throw std::invalid_argument("isa: expected native, avx2 or all, got " + options.isa);
  if (options.kernels.find('\'') != std::string::npos)
    throw std::invalid_argument("kernels: the expression has a quotation mark");
  if (options.arm.empty()) {
    if (options.network != "all" && options.network != "none") workload(options.network);
    std::optional<OldMeasurements> old;
    if (!options.compareFile.empty()) old.emplace(options.compareFile);  // reports an unreadable file early
    if (options.machineAlone)
      printMachineAlone();
    else
      compareAll(options, old);
    return 0;
  }
  int workers = 1, threads = 1;
  if (std::sscanf(options.arm.c_str(), "%dx%d", &workers, &threads) != 2)
    throw std::invalid_argument("arm: expected WORKERSxTHREADS, got " + options.arm);
  if (options.network == "machine")
    measureMachineAlone(threads, options.seconds);
  else
    measure(options, workers, threads);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "end_to_end: {}\n", error.what());
  return 1;
}
