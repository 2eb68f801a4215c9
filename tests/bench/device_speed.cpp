// Measures how fast a device merges replicas, compared with copying, and the time lost between graph
// launches. With --about, only describes the device and its libraries.
#include <dlfcn.h>
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/random.h"
#include "muster/core/ops/axpy.h"
#include "muster/core/ops/merge.h"
#include "tests/bench/command_line.h"
#include "tests/bench/device_timing.h"
#include "tests/bench/timing.h"

namespace {

using namespace muster;
using namespace muster::bench;

struct Options {
  Device device = Device::cuda(0);
  std::vector<int> megabytes{1, 10, 100, 400};  // of one replica
  std::vector<int> replicas{2, 4, 8};
  Repeats repeats = {};
};

/// The file of a loaded library, found by the beginning of its name.
std::string loadedFile(std::string_view name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (const auto slash = line.find('/');
        slash != std::string::npos && line.substr(line.rfind('/') + 1).starts_with(name))
      return line.substr(slash);
  return "";
}

/// Prints a library's version, a number returned by a function without arguments.
void printLibrary(const char* title, const char* fileName, const char* function) {
  const auto file = loadedFile(fileName);
  if (file.empty()) return;
  std::size_t version = 0;
  if (void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
    if (void* symbol = ::dlsym(library, function)) version = reinterpret_cast<std::size_t (*)()>(symbol)();
    ::dlclose(library);
  }
  fmt::print("{}: {} ({})\n", title, version, file);
}

void printAbout(Device device) {
  Context context(device);  // loads the libraries
  const auto properties = propertiesOf(device);
  fmt::print("device: {} ({})\n", properties.name, device.toString());
  fmt::print("CPU cores: {}\n", availableParallelism());
  if (device.isCpu()) return;
  const auto version = [](int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); };
  fmt::print("memory: {:.1f} GB\n", static_cast<double>(properties.memoryBytes) / 1e9);
  fmt::print("compute capability: {}.{}, {} multiprocessors\n", properties.major, properties.minor,
             properties.multiprocessors);
  fmt::print("CUDA: runtime {}, the driver has {}\n", version(properties.runtime),
             version(properties.driver));
  printLibrary("cuBLASLt", "libcublasLt.so", "cublasLtGetVersion");
  printLibrary("cuDNN", "libcudnn.so", "cudnnGetVersion");
  fmt::print("math mode: {}\n", nameOf(context.mathMode()));
}

/// Random numbers from [0.5, 1.5), a million that repeat.
Tensor randomNumbers(std::int64_t count, Device device) {
  constexpr std::int64_t kPeriod = 1'000'003;
  Tensor numbers = Tensor::empty({count});
  const RandomStream random(7, "numbers");
  float* const to = numbers.data<float>();
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = i < kPeriod ? static_cast<float>(0.5 + random.uniform(static_cast<std::uint64_t>(i)))
                        : to[i - kPeriod];
  return copyTo(numbers, device);
}

/// Bytes per second of a copy on the device, reads plus writes.
double copyBandwidth(std::int64_t bytes, Context& context, const Options& options) {
  const auto elements = bytes / 4;
  const Tensor from = randomNumbers(elements, options.device);
  Tensor to = Tensor::empty({elements}, DType::Float32, options.device);
  const double seconds = secondsOf([&] { copy(from, to, context); }, context, options.repeats);
  const float got = copyTo(to.slice(elements - 1, {1}), Device::cpu()).data<float>()[0];
  if (got != copyTo(from.slice(elements - 1, {1}), Device::cpu()).data<float>()[0])
    throw std::runtime_error("the copy is wrong");
  return 2.0 * static_cast<double>(bytes) / seconds;
}

/// Replica w is x (1 + w), and so the mean of W is x (1 + (W - 1) / 2).
std::vector<Tensor> makeReplicas(const Tensor& x, int count, Context& context) {
  std::vector<Tensor> replicas;
  for (int w = 0; w < count; ++w) {
    replicas.push_back(Tensor::empty(x.shape(), DType::Float32, x.device()));
    copy(x, replicas.back(), context);
    axpy(w, x, replicas.back(), context);
  }
  context.synchronize();
  return replicas;
}

void checkMean(const Tensor& mean, const Tensor& x, int replicas) {
  const Tensor got = copyTo(mean, Device::cpu()), from = copyTo(x, Device::cpu());
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double expected = from.data<float>()[i] * (1 + (replicas - 1) / 2.0);
    if (!(std::abs(got.data<float>()[i] - expected) <= 1e-6 * expected))
      throw std::runtime_error(
          fmt::format("the mean of element {} is {}, not {}", i, got.data<float>()[i], expected));
  }
}

/// Bytes per second of a merge, which reads and writes each replica and writes the merged copy.
struct MergeSpeed {
  double plain, withDistances;
};
MergeSpeed mergeSpeed(std::int64_t bytes, int count, Context& context, const Options& options) {
  const Tensor x = randomNumbers(bytes / 4, options.device);
  auto replicas = makeReplicas(x, count, context);
  const std::vector<double> weights(static_cast<std::size_t>(count), 128.0);
  Tensor mergedCopy = Tensor::zeros(x.shape(), DType::Float32, options.device);
  Tensor distances = Tensor::zeros({count + 1}, DType::Float64, options.device);
  const auto n = x.elements();
  weightedMean(replicas, weights, mergedCopy, 0, n, distances, context);
  context.synchronize();
  for (const Tensor& mean : {mergedCopy, replicas.front(), replicas.back()}) checkMean(mean, x, count);
  const double moved = (2.0 * count + 1) * static_cast<double>(bytes);
  return {moved / secondsOf([&] { weightedMean(replicas, weights, mergedCopy, 0, n, context); }, context,
                            options.repeats),
          moved / secondsOf([&] { weightedMean(replicas, weights, mergedCopy, 0, n, distances, context); },
                            context, options.repeats)};
}

void measureMerges(Context& context, const Options& options) {
  const double copied = copyBandwidth(400'000'000, context, options);
  fmt::print("Copy of 400 MB on the device: {:.0f} GB/s, read and written\n\n", copied / 1e9);
  fmt::print(
      "Merging replicas: each is read and written once, a merged copy written; medians of {} rounds\n\n",
      options.repeats.rounds);
  fmt::print("{:>8} {:>9} {:>10} {:>14} {:>22}\n", "replicas", "MB each", "GB/s", "share of copy",
             "share, with distances");
  double least = INFINITY;
  for (const int megabytes : options.megabytes)
    for (const int count : options.replicas) try {
        const auto speed = mergeSpeed(std::int64_t{1'000'000} * megabytes, count, context, options);
        fmt::print("{:>8} {:>9} {:>10.0f} {:>12.1f} % {:>20.1f} %\n", count, megabytes, speed.plain / 1e9,
                   100 * speed.plain / copied, 100 * speed.withDistances / copied);
        if (megabytes >= 100) least = std::min({least, speed.plain, speed.withDistances});
      } catch (const OutOfMemory& error) {
        fmt::print("{:>8} {:>9} {}\n", count, megabytes, error.what());
      }
  fmt::print("Small replicas may lie in the cache, where merging is faster than a copy in memory.\n\n");
  if (std::isfinite(least))
    fmt::print("merging replicas of 100 MB and more: goal 90 % of a copy, measured at least {:.1f} %: {}\n",
               100 * least / copied, least >= 0.9 * copied ? "reached" : "missed");
}

/// A graph of `operations` small operations in sequence, as in a step: y += 2^-20 each.
struct Chain {
  static constexpr double kTerm = 0x1p-20;
  Context& context;
  int operations;
  Tensor x, y;
  Graph graph;

  Chain(Context& where, int length, std::int64_t elements)
      : context(where),
        operations(length),
        x(copyTo(ones(elements), where.device())),
        y(Tensor::zeros({elements}, DType::Float32, where.device())),
        graph(warm()) {}

  /// Time of `launches` back to back, and of only enqueuing them.
  struct Times {
    double total, enqueuing;
  };
  Times run(int launches) {
    setZero(y, context);
    context.synchronize();
    const auto begin = Clock::now();
    for (int i = 0; i < launches; ++i) graph.launch();
    const double enqueuing = secondsSince(begin);
    context.synchronize();
    const double total = secondsSince(begin);
    if (copyTo(y.slice(0, {1}), Device::cpu()).data<float>()[0] != kTerm * launches * operations)
      throw std::runtime_error("launches were lost");
    return {total, enqueuing};
  }

 private:
  static Tensor ones(std::int64_t elements) {
    Tensor tensor = Tensor::empty({elements});
    std::ranges::fill(tensor.span<float>(), 1.0f);
    return tensor;
  }
  Graph warm() {
    axpy(kTerm, x, y, context);
    context.synchronize();
    return Graph(context, [this] {
      for (int i = 0; i < operations; ++i) axpy(kTerm, x, y, context);
    });
  }
};

void measureLaunches(Context& context, const Options& options) {
  constexpr int kOperations = 20, kLaunches = 400, kLong = 2000;
  constexpr std::int64_t kElements = 1 << 18;
  fmt::print(
      "\nTime between graph launches: graphs of {} additions of {} numbers, {} launches back to back; "
      "medians of\n"
      "{} rounds. An operation's own time is that in a graph of {}.\n\n",
      kOperations, kElements, kLaunches, options.repeats.rounds, kLong);
  Chain step(context, kOperations, kElements), together(context, kLong, kElements);
  step.run(kLaunches);
  together.run(1);
  std::vector<double> launch, enqueue, operation, lost;
  for (int round = 0; round < options.repeats.rounds; ++round) {
    const auto times = step.run(kLaunches);
    launch.push_back(times.total / kLaunches);
    enqueue.push_back(times.enqueuing / kLaunches);
    operation.push_back(together.run(4).total / (4 * kLong));
    lost.push_back(launch.back() - kOperations * operation.back());
  }
  const auto row = [](const char* text, const std::vector<double>& seconds) {
    fmt::print("{:<48} {:>8.2f} us\n", text, 1e6 * medianOf(seconds));
  };
  row("from launch to launch", launch);
  row("an operation in a long graph", operation);
  row("lost between two launches", lost);
  row("the host's call of one launch", enqueue);
}

/// A short run of everything, for profilers.
void probe(Context& context, const Options& options) {
  mergeSpeed(40'000, 2, context, {.device = options.device, .repeats = {.rounds = 1, .milliseconds = 0}});
}

/// Writes 64 bytes beyond the end of an allocation of 400 with one of our kernels, as a planted error for
/// memory checkers. On a GPU no other data are there, because allocations begin at multiples of 256 bytes.
void plantError(Context& context, const Options& options) {
  constexpr std::int64_t kThere = 100, kTaken = 116;
  const Tensor x = Tensor::zeros({kTaken}, DType::Float32, options.device);
  const Tensor y = Tensor::zeros({kThere}, DType::Float32, options.device);
  Tensor tooLong = Tensor::view(y.raw(), {kTaken}, DType::Float32, options.device);
  axpy(1, x, tooLong, context);
  context.synchronize();
}

}  // namespace

int main(int argc, char** argv) try {
  namespace po = boost::program_options;
  Options options;
  std::string device = options.device.toString();
  po::options_description description("How fast a device merges replicas and launches graphs");
  auto add = description.add_options();
  add("device", po::value(&device), "which [cuda:0]");
  add("rounds", po::value(&options.repeats.rounds), "measurements of each kind [5]");
  add("megabytes", po::value(&options.megabytes)->multitoken(), "sizes of a replica [1 10 100 400]");
  add("replicas", po::value(&options.replicas)->multitoken(), "replicas merged [2 4 8]");
  add("about", "only say what the device and its libraries are");
  add("probe", "only one small merge");
  add("planted-error", "only write a little behind the end of an allocation on a GPU");
  po::variables_map given;
  if (!readCommandLine(argc, argv, description, given)) return 0;
  if (options.repeats.rounds < 1) throw std::invalid_argument("rounds must be positive");
  options.device = Device::parse(device);
  if (given.contains("about")) {
    printAbout(options.device);
    return 0;
  }
  Context context(options.device);
  if (given.contains("probe")) {
    probe(context, options);
    return 0;
  }
  if (given.contains("planted-error")) {
    if (options.device.isCpu()) throw std::invalid_argument("planted-error is for a GPU");
    plantError(context, options);
    return 0;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // keep printed results if the program is killed
  measureMerges(context, options);
  measureLaunches(context, options);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "device_speed: {}\n", error.what());
  return 1;
}
