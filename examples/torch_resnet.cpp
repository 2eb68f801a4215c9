// A libtorch module, a small ResNet as torchvision writes it, trained by ParallelWrapper with several
// workers, and beside it by libtorch's own loop with as many threads. `torch_resnet --help` lists what the
// program can be told.

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "examples/support/command_line.h"
#include "examples/support/program.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/interop/torch/torch_model.h"
#include "muster/core/io/output_path.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/parallel_wrapper.h"

using namespace muster;
namespace nn = torch::nn;

namespace {

constexpr std::string_view kIntroduction =
    R"(Trains a libtorch module, a small ResNet, with several workers on digits that the program draws, and tells how fast
it was beside libtorch's own loop with as many threads.
)";

constexpr double kRate = 0.05, kMomentum = 0.9;
constexpr std::int64_t kBatch = 32;

/// Two convolutions and a way past them.
struct BasicBlockImpl : nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false)),
        bn1(out),
        conv2(nn::Conv2dOptions(out, out, 3).padding(1).bias(false)),
        bn2(out) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    if (stride != 1 || in != out)
      downsample->push_back(nn::Conv2d(nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)));
    if (!downsample->is_empty()) downsample->push_back(nn::BatchNorm2d(out));
    register_module("downsample", downsample);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto y = bn2(conv2(torch::relu(bn1(conv1(x)))));
    return torch::relu(y + (downsample->is_empty() ? x : downsample->forward(x)));
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential downsample;
};
TORCH_MODULE(BasicBlock);

/// For images [1, 28, 28] of ten classes.
struct ResNet : nn::Module {
  ResNet()
      : conv1(nn::Conv2dOptions(1, 16, 3).padding(1).bias(false)),
        bn1(16),
        layers(BasicBlock(16, 16, 1), BasicBlock(16, 32, 2), BasicBlock(32, 64, 2)),
        fc(64, 10) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("layers", layers);
    register_module("fc", fc);
  }
  torch::Tensor forward(const torch::Tensor& images) {
    const auto x = torch::relu(bn1(conv1(images.to(torch::kFloat))));
    return fc(layers->forward(x).mean({2, 3}));
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Sequential layers;
  nn::Linear fc;
};

torch::Tensor lossOf(ResNet& net, const TorchBatch& batch) {
  return nn::functional::cross_entropy(net.forward(batch.features()), batch.labels());
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// libtorch's own loop, on this thread and those of its operations.
void trainAlone(ResNet& net, DataSetIterator& data, std::int64_t epochs, int threads) {
  at::set_num_threads(threads);
  torch::optim::SGD optimizer(net.parameters(),
                              torch::optim::SGDOptions(kRate).momentum(kMomentum).nesterov(true));
  net.train();
  Batch batch;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch)
    for (data.reset(epoch); data.next(batch);) {
      optimizer.zero_grad();
      lossOf(net, TorchBatch(batch, true)).backward();
      optimizer.step();
    }
}

struct Options {
  int workers = 2;
  std::int64_t frequency = 4, epochs = 3, examples = 3000, seed = 1;
  std::string model = "torch-resnet.pt";
};

int run(const Options& options) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const GeneratedDigitsIterator digits(kBatch, options.examples, 20, true);
  ImageSetIterator train(digits.set(), kBatch, seed);
  GeneratedDigitsIterator test(kBatch, options.examples, 20, false);
  const auto images = static_cast<double>(options.examples * options.epochs);

  torch::manual_seed(seed);
  TorchModel model([] { return std::make_shared<ResNet>(); }, lossOf,
                   {.updater = Nesterovs{.learningRate = kRate, .momentum = kMomentum}});
  auto wrapper =
      ParallelWrapper::Builder(model).workers(options.workers).averagingFrequency(options.frequency).build();
  fmt::print("plan: {}\n", wrapper.plan());
  const double together = seconds([&] { wrapper.fit(train, options.epochs); });
  fmt::print("{} workers: {:.0f} images a second, accuracy on other digits {:.4f}\n", options.workers,
             images / together, wrapper.evaluate(test).accuracy());

  torch::manual_seed(seed);
  ResNet alone;
  const double apart = seconds([&] { trainAlone(alone, train, options.epochs, options.workers); });
  fmt::print("libtorch alone, {} threads: {:.0f} images a second\n", options.workers, images / apart);

  torch::save(model.shared<ResNet>(), options.model);  // a file as of any libtorch module
  fmt::print("saved: {}\n", options.model);
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
    line.add("epochs", o.epochs, "N", "passes over the data", example::between(1, 1'000'000));
    line.add("examples", o.examples, "N", "digits to train with, and as many to test with",
             example::between(1, 60'000));
    line.add("seed", o.seed, "N", "of the first weights and of the order of the digits", example::atLeast(0));
    line.add("model", o.model, "FILE", "the trained module, as torch::save writes it", example::fileName);
    if (!line.read(argc, argv)) return 0;
    checkOutputFile(o.model);
    return run(o);
  });
}
