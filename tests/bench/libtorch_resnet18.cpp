// What muster's ResNet-18 is measured against: the same network in libtorch, trained by plain SGD on random
// images of 28x28. Prints one line of JSON.
#include <fmt/format.h>
#include <torch/torch.h>

#include <boost/program_options.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>

#include "tests/bench/command_line.h"
#include "tests/bench/libtorch_setup.h"
#include "tests/bench/peak_memory.h"

namespace {

namespace nn = torch::nn;
using Clock = std::chrono::steady_clock;

struct Options {
  int threads = 1;
  std::int64_t batch = 64;
  double warmUpSeconds = 3;
  double seconds = 10;
  bool channelsLast = false;
};

Options parse(int argc, char** argv) {
  namespace po = boost::program_options;
  Options options;
  po::options_description description("Trains ResNet-18 with libtorch on random images of 28x28");
  auto add = description.add_options();
  add("threads", po::value(&options.threads), "threads [1]");
  add("batch", po::value(&options.batch), "images a step [64]");
  add("warm-up", po::value(&options.warmUpSeconds), "seconds before the measurement [3]");
  add("seconds", po::value(&options.seconds), "seconds measured [10]");
  add("channels-last", po::bool_switch(&options.channelsLast), "images and weights channels-last");
  po::variables_map given;
  if (!muster::bench::readCommandLine(argc, argv, description, given)) std::exit(0);
  if (options.threads < 1 || options.batch < 1)
    throw std::invalid_argument("threads and batch must be at least 1");
  return options;
}

nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// Two convolutions 3x3 and a shortcut, itself a convolution 1x1 where channels or size change.
struct Residual : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr}, shortcut{nullptr};
  nn::BatchNorm2d norm1{nullptr}, norm2{nullptr}, shortcutNorm{nullptr};

  Residual(std::int64_t in, std::int64_t out, std::int64_t stride) {
    conv1 = register_module("conv1", convolution(in, out, 3, stride));
    norm1 = register_module("norm1", nn::BatchNorm2d(out));
    conv2 = register_module("conv2", convolution(out, out, 3, 1));
    norm2 = register_module("norm2", nn::BatchNorm2d(out));
    if (in == out && stride == 1) return;
    shortcut = register_module("shortcut", convolution(in, out, 1, stride));
    shortcutNorm = register_module("shortcutNorm", nn::BatchNorm2d(out));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    auto y = norm1(conv1(x)).relu_();
    y = norm2(conv2(y));
    y += shortcut ? shortcutNorm(shortcut(x)) : x;
    return y.relu_();
  }
};

struct ResNet18 : nn::Module {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Sequential blocks;
  nn::Linear output{nullptr};

  ResNet18(std::int64_t classes, std::int64_t channels) {
    conv = register_module("conv", convolution(channels, 64, 3, 1));
    norm = register_module("norm", nn::BatchNorm2d(64));
    for (std::int64_t in = 64, out = 64; out <= 512; in = out, out *= 2) {
      blocks->push_back(Residual(in, out, in == out ? 1 : 2));
      blocks->push_back(Residual(out, out, 1));
    }
    register_module("blocks", blocks);
    output = register_module("output", nn::Linear(512, classes));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    auto y = blocks->forward(norm(conv(x)).relu_());
    return output(torch::adaptive_avg_pool2d(y, {1, 1}).flatten(1));
  }
};

class Trainer {
 public:
  explicit Trainer(const Options& options) : data_(options.batch, 8, options.channelsLast), net_(10, 1) {
    if (options.channelsLast)
      for (auto& parameter : net_.parameters())
        if (parameter.dim() == 4) parameter.set_data(channelsLast(parameter));
    optimizer_ = std::make_unique<torch::optim::SGD>(net_.parameters(), torch::optim::SGDOptions(0.01));
  }

  /// Steps for so many seconds, at least one. @return steps a second.
  double run(double seconds) {
    const auto begin = Clock::now();
    std::int64_t steps = 0;
    double elapsed = 0;
    for (; elapsed < seconds || steps == 0; ++steps) {
      loss_ = step();
      elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    if (!std::isfinite(loss_)) throw std::runtime_error("the loss is not finite");
    return static_cast<double>(steps) / elapsed;
  }

 private:
  double step() {
    optimizer_->zero_grad();
    auto loss = nn::functional::cross_entropy(net_.forward(data_.images(next_)), data_.labels(next_));
    ++next_;
    loss.backward();
    optimizer_->step();
    return loss.item<double>();
  }

  ResidentData data_;
  ResNet18 net_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
  std::int64_t next_ = 0;
  double loss_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  restartTuned(argv);
  const Options options = parse(argc, argv);
  pinToCores(0, options.threads);
  at::set_num_threads(options.threads);
  at::set_num_interop_threads(1);
  Trainer trainer(options);
  trainer.run(options.warmUpSeconds);
  const double steps = trainer.run(options.seconds);
  fmt::print("{{\"samplesPerSecond\": {:.1f}, \"peakMemoryBytes\": {}}}\n",
             steps * static_cast<double>(options.batch), peakMemoryBytes());
  return 0;
} catch (const std::exception& error) {
  std::cerr << "libtorch_resnet18: " << error.what() << '\n';
  return 1;
}
