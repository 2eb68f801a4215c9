// The baseline of muster: the networks of libtorch_networks.h, trained by several workers whose parameters
// and momentum are averaged every few iterations. Prints one line of JSON.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <barrier>
#include <boost/program_options.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/command_line.h"
#include "tests/bench/libtorch_networks.h"
#include "tests/bench/libtorch_setup.h"
#include "tests/bench/peak_memory.h"

namespace {

using Clock = std::chrono::steady_clock;

using libtorch::ResidentData;

struct Options {
  std::string network = "convnet";
  int workers = 1;
  int threads = 1;  // per worker
  std::int64_t batch = 128;
  double warmUpSeconds = 2;
  double seconds = 10;
  int averagingFrequency = 3;
};

Options parse(int argc, char** argv) {
  namespace po = boost::program_options;
  Options options;
  po::options_description description("Trains a network with libtorch on random examples");
  auto add = description.add_options();
  add("network", po::value(&options.network), "as end_to_end's [convnet]");
  add("workers", po::value(&options.workers), "model copies, each on cores of its own [1]");
  add("threads", po::value(&options.threads), "threads a worker [1]");
  add("batch", po::value(&options.batch), "examples per step [128]");
  add("warm-up", po::value(&options.warmUpSeconds), "seconds before the measurement [2]");
  add("seconds", po::value(&options.seconds), "seconds measured [10]");
  add("averaging-frequency", po::value(&options.averagingFrequency), "iterations between averages [3]");
  po::variables_map given;
  if (!muster::bench::readCommandLine(argc, argv, description, given)) std::exit(0);
  if (options.workers < 1 || options.threads < 1 || options.batch < 1 || options.averagingFrequency < 1)
    throw std::invalid_argument("workers, threads, batch and averaging-frequency must be at least 1");
  return options;
}

/// One model copy and its optimiser.
class Replica {
 public:
  explicit Replica(const Options& options) {
    torch::manual_seed(123);
    net_ = libtorch::makeNet(options.network);
    for (auto& parameter : net_->parameters())
      if (parameter.dim() == 4) parameter.set_data(libtorch::channelsLast(parameter));
    auto sgd = torch::optim::SGDOptions(0.01);
    if (options.network != "convnet") {
      optimizer_ = std::make_unique<torch::optim::SGD>(net_->parameters(), sgd);
      return;
    }
    sgd.momentum(0.9).nesterov(true);
    std::vector<torch::Tensor> weights, biases;
    for (auto& parameter : net_->parameters()) (parameter.dim() > 1 ? weights : biases).push_back(parameter);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(weights, std::make_unique<torch::optim::SGDOptions>(
                                     torch::optim::SGDOptions(sgd).weight_decay(5e-4)));
    groups.emplace_back(biases, std::make_unique<torch::optim::SGDOptions>(sgd));
    optimizer_ = std::make_unique<torch::optim::SGD>(groups, sgd);
  }

  double step(const torch::Tensor& features, const torch::Tensor& labels) {
    optimizer_->zero_grad();
    auto loss = torch::nn::functional::cross_entropy(net_->forward(features), labels);
    loss.backward();
    optimizer_->step();
    return loss.item<double>();
  }

  /// Parameters and momentum, each tensor in memory order.
  std::vector<std::span<float>> state() {
    std::vector<std::span<float>> spans;
    for (auto& parameter : net_->parameters()) {
      spans.emplace_back(parameter.data_ptr<float>(), parameter.numel());
      const auto& states = optimizer_->state();
      const auto key = c10::guts::to_string(parameter.unsafeGetTensorImpl());
      if (states.count(key) == 0) continue;
      auto& momentum = static_cast<torch::optim::SGDParamState&>(*states.at(key)).momentum_buffer();
      if (!momentum.defined()) continue;
      spans.emplace_back(momentum.data_ptr<float>(), momentum.numel());
    }
    return spans;
  }

 private:
  std::shared_ptr<libtorch::Net> net_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
};

/// Trains on `workers` threads, round after round of averagingFrequency iterations, and times the rounds
/// after the warm-up.
class Trainer {
 public:
  explicit Trainer(const Options& options)
      : options_(options),
        data_(options.network, options.batch, options.network == "transformer" ? 8 : 64),
        states_(options.workers),
        losses_(options.workers) {}

  /// @return samples per second of all workers together.
  double run() {
    {
      std::vector<std::jthread> threads;
      for (int worker = 0; worker < options_.workers; ++worker)
        threads.emplace_back([this, worker] { work(worker); });
    }
    for (double loss : losses_)
      if (!std::isfinite(loss)) throw std::runtime_error("the loss is not finite");
    const auto samples = timedRounds_ * options_.averagingFrequency * options_.workers * options_.batch;
    return static_cast<double>(samples) / std::chrono::duration<double>(last_ - begin_).count();
  }

 private:
  void work(int worker) {
    pinToCores(worker * options_.threads, options_.threads);
    at::set_num_threads(options_.threads);
    Replica replica(options_);
    for (std::int64_t step = 0; !done_;) {
      for (int i = 0; i < options_.averagingFrequency; ++i, ++step) {
        const auto batch = step * options_.workers + worker;
        losses_[worker] = replica.step(data_.features(batch), data_.labels(batch));
      }
      states_[worker] = replica.state();
      arrived_.arrive_and_wait();
      average(worker);
      averaged_.arrive_and_wait();
    }
  }

  /// Each worker averages its slice of every tensor, for all workers.
  void average(int worker) {
    const std::size_t workers = states_.size();
    if (workers == 1) return;
    for (std::size_t tensor = 0; tensor < states_[0].size(); ++tensor) {
      const std::size_t size = states_[0][tensor].size();
      const std::size_t begin = size * worker / workers, end = size * (worker + 1) / workers;
      float* const sum = states_[0][tensor].data();
      for (std::size_t other = 1; other < workers; ++other) {
        const float* const values = states_[other][tensor].data();
        for (std::size_t i = begin; i < end; ++i) sum[i] += values[i];
      }
      for (std::size_t i = begin; i < end; ++i) sum[i] /= static_cast<float>(workers);
      for (std::size_t other = 1; other < workers; ++other)
        std::copy(sum + begin, sum + end, states_[other][tensor].data() + begin);
    }
  }

  /// Runs on one thread, while the others wait.
  void endRound() noexcept {
    last_ = Clock::now();
    if (!timing_) {
      timing_ = std::chrono::duration<double>(last_ - begin_).count() >= options_.warmUpSeconds;
      if (timing_) begin_ = last_;
      return;
    }
    ++timedRounds_;
    done_ = std::chrono::duration<double>(last_ - begin_).count() >= options_.seconds;
  }

  Options options_;
  ResidentData data_;
  std::vector<std::vector<std::span<float>>> states_;  // [worker][tensor], each written by its worker
  std::vector<double> losses_;                         // [worker], each written by its worker
  std::barrier<> arrived_{options_.workers};
  struct EndRound {
    Trainer* trainer;
    void operator()() noexcept { trainer->endRound(); }
  };
  std::barrier<EndRound> averaged_{options_.workers, EndRound{this}};
  // Written only in endRound.
  Clock::time_point begin_ = Clock::now(), last_;
  bool timing_ = false, done_ = false;
  std::int64_t timedRounds_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  restartTuned(argv);
  const Options options = parse(argc, argv);
  at::set_num_threads(options.threads);
  at::set_num_interop_threads(1);
  const double samplesPerSecond = Trainer(options).run();
  fmt::print("{{\"samplesPerSecond\": {:.1f}, \"peakMemoryBytes\": {}}}\n", samplesPerSecond,
             peakMemoryBytes());
  return 0;
} catch (const std::exception& error) {
  std::cerr << "libtorch_training: " << error.what() << '\n';
  return 1;
}
