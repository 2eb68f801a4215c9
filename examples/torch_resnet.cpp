// Trains a libtorch module, torchvision's ResNet-18, with two workers, in turns with a plain libtorch loop.

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <chrono>
#include <memory>
#include <vector>

#include "muster/core/eval/evaluation.h"
#include "muster/core/interop/torch/torch_model.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/parallel_wrapper.h"
#include "options.h"

using namespace muster;
namespace nn = torch::nn;

namespace {

constexpr int kWorkers = 2;
constexpr double kRate = 0.05, kMomentum = 0.9;

nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// A residual block: two convolutions and a shortcut.
struct BasicBlockImpl : nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride) {
    conv1 = register_module("conv1", convolution(in, out, 3, stride));
    bn1 = register_module("bn1", nn::BatchNorm2d(out));
    conv2 = register_module("conv2", convolution(out, out, 3, 1));
    bn2 = register_module("bn2", nn::BatchNorm2d(out));
    if (stride == 1 && in == out) return;
    downsample =
        register_module("downsample", nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out)));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto y = bn2(conv2(torch::relu(bn1(conv1(x)))));
    return torch::relu(y + (downsample ? downsample->forward(x) : x));
  }
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};
  nn::Sequential downsample{nullptr};
};
TORCH_MODULE(BasicBlock);

/// ResNet-18 with torchvision's names, for images [1, H, W]; torchvision's first stage is 64 wide.
struct ResNet18 : nn::Module {
  explicit ResNet18(std::int64_t width) {
    conv1 = register_module("conv1", convolution(1, width, 7, 2));
    bn1 = register_module("bn1", nn::BatchNorm2d(width));
    for (std::int64_t stage = 0, in = width; stage < 4; ++stage) {
      const std::int64_t out = width << stage;
      const nn::Sequential layer(BasicBlock(in, out, stage == 0 ? 1 : 2), BasicBlock(out, out, 1));
      layers.push_back(register_module(fmt::format("layer{}", stage + 1), layer));
      in = out;
    }
    fc = register_module("fc", nn::Linear(8 * width, 10));
  }
  torch::Tensor forward(const torch::Tensor& images) {
    auto x = torch::max_pool2d(torch::relu(bn1(conv1(images))), 3, 2, 1);
    for (auto& layer : layers) x = layer->forward(x);
    return fc(x.mean({2, 3}));
  }
  nn::Conv2d conv1{nullptr};
  nn::BatchNorm2d bn1{nullptr};
  std::vector<nn::Sequential> layers;
  nn::Linear fc{nullptr};
};

torch::Tensor lossOf(ResNet18& net, const TorchBatch& batch) {
  return nn::functional::cross_entropy(net.forward(batch.features()), batch.labels());
}

double seconds(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// An epoch of a plain libtorch loop.
void trainAlone(ResNet18& net, torch::optim::SGD& optimizer, DataSetIterator& data, std::int64_t epoch) {
  net.train();
  data.reset(epoch);
  for (Batch batch; data.next(batch);) {
    optimizer.zero_grad();
    lossOf(net, TorchBatch(batch, true)).backward();
    optimizer.step();
  }
}

double accuracyAlone(ResNet18& net, DataSetIterator& data) {
  const torch::NoGradGuard noGrad;
  net.eval();
  Batch all;  // all digits are one batch
  data.reset(0);
  data.next(all);
  const TorchBatch batch(all, false);
  return (net.forward(batch.features()).argmax(1) == batch.labels()).to(torch::kDouble).mean().item<double>();
}

void run(std::int64_t epochs, std::int64_t examples, std::int64_t width) {
  GeneratedDigitsIterator train(32, examples, /*seed=*/20, true), test(examples, examples, 20, false);
  require(epochs > 1, "--epochs 1 times nothing: the first epoch is a warm-up");
  torch::manual_seed(1);
  TorchModel model([width] { return std::make_shared<ResNet18>(width); }, lossOf,
                   {.updater = Nesterovs{.learningRate = kRate, .momentum = kMomentum}});
  auto wrapper = ParallelWrapper::Builder(model).workers(kWorkers).averagingFrequency(4).build();
  fmt::print("plan: {}; {} parameters\n", wrapper.plan(), model.parameterCount());

  torch::manual_seed(1);
  ResNet18 alone(width);
  torch::optim::SGD optimizer(alone.parameters(),
                              torch::optim::SGDOptions(kRate).momentum(kMomentum).nesterov(true));
  at::set_num_threads(kWorkers);
  double together = 0, apart = 0;
  // In turns, so that other load on the machine affects both. The first turn is a warm-up.
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const double mine = seconds([&] { wrapper.fit(train); });
    const double theirs = seconds([&] { trainAlone(alone, optimizer, train, epoch); });
    fmt::print("epoch {}: {:.1f} s, libtorch alone {:.1f} s\n", epoch + 1, mine, theirs);
    together += epoch > 0 ? mine : 0;
    apart += epoch > 0 ? theirs : 0;
  }
  torch::save(model.shared<ResNet18>(), "torch-resnet.pt");  // as any libtorch module
  const auto images = static_cast<double>(examples * (epochs - 1));
  fmt::print("{} workers: accuracy on other digits {:.4f}, {:.0f} images/s\n", kWorkers,
             wrapper.evaluate(test).accuracy(), images / together);
  fmt::print("libtorch alone, {} threads: {:.4f}, {:.0f} images/s; {:.2f} times as many by workers\n",
             kWorkers, accuracyAlone(alone, test), images / apart, apart / together);
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t epochs = 4, examples = 3000, width = 16;
  return example::runExample(
      argc, argv,
      "Trains a libtorch module, a ResNet-18 as torchvision has it, with several workers\n"
      "on generated digits, in turns with libtorch's own loop on as many threads.",
      {{"epochs", &epochs, "passes over the digits, in turns; the first is not timed"},
       {"examples", &examples, "digits to train with, and as many to test with"},
       {"width", &width, "channels of the first stage; 64 is ResNet-18 as published"}},
      [&] { run(epochs, examples, width); });
}
