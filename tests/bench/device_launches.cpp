// Measures the cost of launching graphs from several threads at once, as workers on one GPU do: graphs of
// small kernels in sequence, with a fork to the side stream, and with copies at both ends.
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <boost/program_options.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "muster/core/ops/axpy.h"
#include "tests/bench/command_line.h"
#include "tests/bench/timing.h"

namespace {

using namespace muster;
using namespace muster::bench;

enum class Form { Straight, Forked, Copies };
constexpr std::pair<Form, const char*> kForms[] = {
    {Form::Straight, "straight"}, {Form::Forked, "forked"}, {Form::Copies, "copies"}};
constexpr int kKernels = 30;  // per graph, about as many as in a step

struct Options {
  Device device = Device::cuda(0);
  std::vector<int> threads{1, 2, 4, 8};
  int launches = 2000, rounds = 3;
};

/// A graph of additions, y += 2^-20 each, on its own context.
class Chain {
 public:
  Chain(Form form, Device device)
      : context_(device),
        form_(form),
        x_(copyTo(ones(), device)),
        y_(Tensor::zeros({kElements}, DType::Float32, device)),
        beside_(Tensor::zeros({kElements}, DType::Float32, device)),
        in_(Tensor::pinned({kElements}, DType::Float32)),
        out_(Tensor::pinned({kElements}, DType::Float32)) {
    if (form == Form::Forked) context_.prepareSideStream();
    copy(ones(), in_);
    enqueue();
    context_.synchronize();
    graph_ = std::make_unique<Graph>(context_, [this] { enqueue(); });
  }

  void launch() { graph_->launch(); }
  void synchronize() { context_.synchronize(); }
  void clear() {
    setZero(y_, context_);
    setZero(beside_, context_);
    context_.synchronize();
  }
  /// Checks that no addition of `launches` graphs is lost.
  void check(int launches) const {
    const int beside = form_ == Form::Forked ? kKernels / 3 : 0;
    const auto first = [](const Tensor& t) {
      return copyTo(t.slice(0, {1}), Device::cpu()).data<float>()[0];
    };
    if (first(y_) != kTerm * launches * (kKernels - beside) || first(beside_) != kTerm * launches * beside)
      throw std::runtime_error("launches were lost");
  }

 private:
  static constexpr std::int64_t kElements = 256;
  static constexpr float kTerm = 0x1p-20f;  // exact sums below 2^24 additions

  static Tensor ones() {
    Tensor tensor = Tensor::empty({kElements});
    std::ranges::fill(tensor.span<float>(), 1.0f);
    return tensor;
  }

  void enqueue() {
    if (form_ == Form::Copies) copy(in_, x_, context_);
    SideStreamScope side(context_);
    side.permit(form_ == Form::Forked);
    for (int i = 0; i < kKernels; ++i)
      if (form_ == Form::Forked && i % 3 == 1)
        context_.onSideStream([&] { axpy(kTerm, x_, beside_, context_); });
      else
        axpy(kTerm, x_, y_, context_);
    side.join();
    if (form_ == Form::Copies) copy(y_, out_, context_);
  }

  Context context_;
  Form form_;
  Tensor x_, y_, beside_, in_, out_;
  std::unique_ptr<Graph> graph_;
};

struct Speed {
  double launches = 0;  // per second, all threads together
  double call = 0;      // seconds per launch call of a thread
};

/// One round of `count` threads that start together.
Speed measure(Form form, int count, const Options& options) {
  std::vector<double> seconds(static_cast<std::size_t>(count)), calls(seconds.size());
  std::barrier<> ready(count);
  std::mutex mutex;
  std::exception_ptr failure;  // guarded by mutex
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < seconds.size(); ++t)
      threads.emplace_back([&, t] {
        std::unique_ptr<Chain> chain;
        const auto guarded = [&](auto work) {
          try {
            work();
          } catch (...) {
            const std::scoped_lock lock(mutex);
            if (!failure) failure = std::current_exception();
          }
        };
        guarded([&] {
          chain = std::make_unique<Chain>(form, options.device);
          for (int i = 0; i < 100; ++i) chain->launch();
          chain->clear();
        });
        ready.arrive_and_wait();
        guarded([&] {
          if (!chain) return;
          const auto begin = Clock::now();
          for (int i = 0; i < options.launches; ++i) chain->launch();
          calls[t] = secondsSince(begin) / options.launches;
          chain->synchronize();
          seconds[t] = secondsSince(begin);
          chain->check(options.launches);
        });
      });
  }
  if (failure) std::rethrow_exception(failure);
  return {count * options.launches / *std::ranges::max_element(seconds), *std::ranges::max_element(calls)};
}

void measureAll(const Options& options) {
  fmt::print(
      "Threads that launch graphs of {} kernels of {} numbers at once, {} launches each; medians of {} "
      "rounds\n\n{:<10} {:>7} {:>13} {:>13} {:>14} {:>14}\n",
      kKernels, 256, options.launches, options.rounds, "graph", "threads", "launches/s", "kernels/s",
      "us the call", "vs 1 thread");
  std::map<std::pair<Form, int>, double> kernels;
  for (const auto& [form, name] : kForms)
    for (const int threads : options.threads) {
      std::vector<double> launches, calls;
      for (int round = 0; round < options.rounds; ++round) {
        const Speed speed = measure(form, threads, options);
        launches.push_back(speed.launches);
        calls.push_back(speed.call);
      }
      const double perSecond = medianOf(launches);
      kernels[{form, threads}] = kKernels * perSecond;
      fmt::print("{:<10} {:>7} {:>13.0f} {:>13.0f} {:>14.2f} {:>12.2f} x\n", name, threads, perSecond,
                 kKernels * perSecond, 1e6 * medianOf(calls),
                 perSecond * kKernels / kernels[{form, options.threads.front()}]);
    }
  const int most = options.threads.back();
  const double times = kernels[{Form::Straight, most}] / kernels[{Form::Straight, options.threads.front()}];
  fmt::print("\nlaunches by {} threads against {}: {:.2f} x the kernels a second\n", most,
             options.threads.front(), times);
  if (times < 0.4 * most)
    fmt::print(
        "try: fewer nodes a step, or one graph for all workers of a GPU: {} threads that launch graphs get "
        "{:.2f} x the kernels of one, so the GPU's queue, not the workers' kernels, limits them\n",
        most, times);
  const double forked = kernels[{Form::Forked, 1}], straight = kernels[{Form::Straight, 1}];
  if (forked > 0 && forked < 0.95 * straight)
    fmt::print("try: MUSTER_CUDA_SIDE_STREAM=0: of small kernels a fork costs {:.0f} % of the speed\n",
               100 * (1 - forked / straight));
}

}  // namespace

int main(int argc, char** argv) try {
  namespace po = boost::program_options;
  Options options;
  std::string device = options.device.toString();
  po::options_description description("How many graphs several threads launch at once");
  auto add = description.add_options();
  add("device", po::value(&device), "which [cuda:0]");
  add("threads", po::value(&options.threads)->multitoken(), "numbers of threads [1 2 4 8]");
  add("launches", po::value(&options.launches), "of each thread [2000]");
  add("rounds", po::value(&options.rounds), "measurements of each kind [3]");
  po::variables_map given;
  if (!readCommandLine(argc, argv, description, given)) return 0;
  if (options.rounds < 1 || options.launches < 1 || std::ranges::min(options.threads) < 1)
    throw std::invalid_argument("rounds, launches and threads must be positive");
  options.device = Device::parse(device);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // keep printed results if the program is killed
  measureAll(options);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "device_launches: {}\n", error.what());
  return 1;
}
