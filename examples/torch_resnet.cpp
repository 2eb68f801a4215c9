// Trains a libtorch module, torchvision's ResNet-18, with ParallelWrapper and several workers, alternating
// with a plain libtorch loop with as many threads. `torch_resnet --help` lists the options.

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "examples/support/command_line.h"
#include "examples/support/divergence.h"
#include "examples/support/keep_network.h"
#include "examples/support/program.h"
#include "examples/support/training_interrupt.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/plural.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/interop/torch/torch_model.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/io/output_path.h"
#include "muster/core/listeners/collect_scores_listener.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/parallel_wrapper.h"

using namespace muster;
namespace nn = torch::nn;

namespace {

constexpr std::string_view kIntroduction =
    R"(Trains a libtorch module, a ResNet-18 as torchvision has it, with several workers on generated digits,
and in turns with libtorch's own loop on as many threads, and tells how fast both are.

Ctrl-C finishes the current step, saves the module and exits with 130; a second one quits.
)";

constexpr double kRate = 0.05, kMomentum = 0.9;
constexpr std::int64_t kBatch = 32, kClasses = 10;

nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// A residual block: two convolutions and a shortcut.
struct BasicBlockImpl : nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(convolution(in, out, 3, stride)), bn1(out), conv2(convolution(out, out, 3, 1)), bn2(out) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    if (stride == 1 && in == out) return;
    downsample = nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out));
    register_module("downsample", downsample);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto y = bn2(conv2(torch::relu(bn1(conv1(x)))));
    return torch::relu(y + (downsample ? downsample->forward(x) : x));
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential downsample{nullptr};
};
TORCH_MODULE(BasicBlock);

/// ResNet-18 with torchvision's names, for images [1, H, W]. Its first stage has `width` channels,
/// torchvision's 64.
struct ResNet18 : nn::Module {
  explicit ResNet18(std::int64_t width)
      : conv1(convolution(1, width, 7, 2)), bn1(width), fc(8 * width, kClasses) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    for (std::int64_t stage = 0, in = width; stage < 4; ++stage) {
      const std::int64_t out = width << stage;
      layers.push_back(nn::Sequential(BasicBlock(in, out, stage == 0 ? 1 : 2), BasicBlock(out, out, 1)));
      register_module(fmt::format("layer{}", stage + 1), layers.back());
      in = out;
    }
    register_module("fc", fc);
  }
  torch::Tensor forward(const torch::Tensor& images) {
    auto x = torch::relu(bn1(conv1(images.to(torch::kFloat))));
    x = torch::max_pool2d(x, 3, 2, 1);
    for (auto& layer : layers) x = layer->forward(x);
    return fc(x.mean({2, 3}));
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  std::vector<nn::Sequential> layers;
  nn::Linear fc;
};

torch::Tensor lossOf(ResNet18& net, const TorchBatch& batch) {
  return nn::functional::cross_entropy(net.forward(batch.features()), batch.labels());
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// A plain libtorch loop on this thread and libtorch's own threads.
class Alone {
 public:
  Alone(std::int64_t width, int threads)
      : net_(width),
        optimizer_(net_.parameters(), torch::optim::SGDOptions(kRate).momentum(kMomentum).nesterov(true)) {
    at::set_num_threads(threads);
  }

  void train(DataSetIterator& data, std::int64_t epoch, const std::stop_token& stop) {
    net_.train();
    for (data.reset(epoch); !stop.stop_requested() && data.next(batch_);) {
      optimizer_.zero_grad();
      lossOf(net_, TorchBatch(batch_, true)).backward();
      optimizer_.step();
    }
  }
  double accuracy(DataSetIterator& data) {
    const torch::NoGradGuard noGrad;
    net_.eval();
    std::int64_t right = 0, all = 0;
    for (data.reset(0); data.next(batch_); all += batch_.examples()) {
      const TorchBatch batch(batch_, false);
      right += (net_.forward(batch.features()).argmax(1) == batch.labels()).sum().item<std::int64_t>();
    }
    return static_cast<double>(right) / static_cast<double>(all);
  }

 private:
  ResNet18 net_;
  torch::optim::SGD optimizer_;
  Batch batch_;
};

struct Options {
  int workers = 2;
  std::int64_t frequency = 4, epochs = 4, examples = 3000, width = 16, seed = 1;
  std::string model = "torch-resnet.pt";
};

/// Times of both trainings.
struct Speeds {
  double together = 0, apart = 0;  // seconds, by workers and by libtorch alone
  std::vector<double> ratios;      // [turn]

  void add(double mine, double theirs) {
    together += mine;
    apart += theirs;
    ratios.push_back(theirs / mine);
  }
  /// Images a second.
  double rate(std::int64_t examples, double time) const {
    return static_cast<double>(examples) * static_cast<double>(ratios.size()) / time;
  }
};

/// Writes the module as torch::save does, but whole or not at all.
void save(TorchModel& model, const std::filesystem::path& path) {
  std::ostringstream bytes;
  torch::save(model.shared<ResNet18>(), bytes);  // as for any libtorch module
  writeFileAtomically(path, bytes.view());
}

int run(const Options& options) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const GeneratedDigitsIterator digits(kBatch, options.examples, 20, true);
  ImageSetIterator train(digits.set(), kBatch, seed);
  GeneratedDigitsIterator test(kBatch, options.examples, 20, false);

  torch::manual_seed(seed);
  TorchModel model([width = options.width] { return std::make_shared<ResNet18>(width); }, lossOf,
                   {.updater = Nesterovs{.learningRate = kRate, .momentum = kMomentum}});
  const auto scores = std::make_shared<CollectScoresListener>();
  auto wrapper = ParallelWrapper::Builder(model)
                     .workers(options.workers)
                     .averagingFrequency(options.frequency)
                     .listeners({scores})
                     .build();
  fmt::print("plan: {}\nResNet-18 of width {}: {}\n", wrapper.plan(), options.width,
             plural(model.parameterCount(), "parameter"));
  torch::manual_seed(seed);
  Alone alone(options.width, options.workers);

  Speeds speeds;
  const example::DivergenceCheck diverged(model, train);
  example::TrainingInterrupt interrupt;
  bool saved = false;
  const auto trainBoth = [&] {
    // Alternate, so that other load on the machine affects both. The first turn is a warm-up.
    for (std::int64_t epoch = 0; epoch < options.epochs && !interrupt.requested(); ++epoch) {
      const double mine = seconds([&] { wrapper.fit(train, 1, interrupt.token()); });
      const double theirs = seconds([&] { alone.train(train, epoch, interrupt.token()); });
      fmt::print("epoch {}/{}: {:.1f} s, libtorch alone {:.1f} s\n", epoch + 1, options.epochs, mine, theirs);
      if (epoch == 0 && options.epochs > 1) continue;
      speeds.add(mine, theirs);
    }
  };
  const auto saveTrained = [&](bool) {
    if (scores->merges().empty()) return;
    diverged.requireNone(model);
    example::writeHereOrElsewhere(options.model,
                                  [&](const std::filesystem::path& path) { save(model, path); });
    saved = true;
    fmt::print("saved: {}\n", options.model);
  };
  example::trainAndSave(trainBoth, saveTrained, fmt::format("the learning rate {}", kRate),
                        {options.model, [&](const std::filesystem::path& path) {
                           if (!scores->merges().empty()) save(model, path);
                           return !scores->merges().empty();
                         }});
  interrupt.end(saved);
  if (interrupt.requested()) {
    fmt::print("interrupted\n");
    return kInterruptedExit;
  }
  fmt::print("accuracy on other digits with {}: {:.4f}, {:.0f} images a second\n",
             plural(options.workers, "worker"), wrapper.evaluate(test).accuracy(),
             speeds.rate(options.examples, speeds.together));
  fmt::print("accuracy on other digits with libtorch alone, {}: {:.4f}, {:.0f} images a second\n",
             plural(options.workers, "thread"), alone.accuracy(test),
             speeds.rate(options.examples, speeds.apart));
  const auto [least, most] = std::ranges::minmax(speeds.ratios);
  fmt::print("{}: {:.2f} times as many images a second as libtorch alone ({:.2f} to {:.2f} in {})\n",
             plural(options.workers, "worker"), speeds.apart / speeds.together, least, most,
             plural(speeds.ratios.size(), "turn"));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::runProgram("torch_resnet", [&] {
    Options o;
    example::CommandLine line(kIntroduction);
    line.group("Options");
    line.add("workers", o.workers, "N", "threads, each with a replica", example::between(1, 1024));
    line.add("averaging-frequency", o.frequency, "N", "iterations of each worker between merges",
             example::atLeast(1));
    line.add("epochs", o.epochs, "N", "passes over the data, in turns; the first is not timed",
             example::between(1, 1'000'000));
    line.add("examples", o.examples, "N", "digits to train with, and as many to test with",
             example::between(1, 60'000));
    line.add("width", o.width, "N", "channels of the first stage; 64 is ResNet-18 as published",
             example::between(1, 1024));
    line.add("seed", o.seed, "N", "seed of the initial weights and of the order of the digits",
             example::atLeast(0));
    line.add("model", o.model, "FILE", "the trained module, as torch::save writes it", example::fileName);
    if (!line.read(argc, argv)) return 0;
    checkOutputFile(o.model);
    example::endOnInterrupt(example::kInterruptedBefore);
    return run(o);
  });
}
