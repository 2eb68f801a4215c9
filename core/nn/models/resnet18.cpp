#include "muster/core/nn/models/resnet18.h"

#include "muster/core/base/error.h"

namespace muster {
namespace {

class Builder {
 public:
  explicit Builder(const Resnet18Options& options) : options_(options) {}

  /// A convolution with a square kernel, and its normalisation.
  std::string convolution(const std::string& name, const std::string& input, std::int64_t channels,
                          std::int64_t kernel, std::int64_t stride, Activation activation) {
    const auto made = graph.add(name,
                                Conv2d{.outChannels = channels,
                                       .kernel = {kernel, kernel},
                                       .stride = {stride, stride},
                                       .padding = {kernel / 2, kernel / 2},
                                       .init = options_.init,
                                       .bias = false},
                                {input});
    return graph.add(name + ".norm",
                     BatchNorm{.momentum = options_.normMomentum,
                               .activation = activation,
                               .synchronised = options_.synchronisedNorm},
                     {made});
  }

  /// @param stride  2 if channels and size change.
  std::string block(const std::string& name, const std::string& input, std::int64_t channels,
                    std::int64_t stride) {
    auto y = convolution(name + ".conv1", input, channels, 3, stride, Activation::ReLU);
    y = convolution(name + ".conv2", y, channels, 3, 1, Activation::Identity);
    const auto shortcut =
        stride == 1 ? input
                    : convolution(name + ".shortcut", input, channels, 1, stride, Activation::Identity);
    return graph.add(name + ".sum", Combine{.combination = Combination::Add, .activation = Activation::ReLU},
                     {y, shortcut});
  }

  ComputationGraphConfiguration graph;

 private:
  Resnet18Options options_;
};

}  // namespace

ComputationGraphConfiguration resnet18(std::int64_t classes, std::int64_t channels,
                                       const Resnet18Options& options) {
  require(
      classes >= 1 && channels >= 1 && options.width >= 1 && options.imageSize[0] >= 1 &&
          options.imageSize[1] >= 1,
      "resnet18: expected at least one class, channel, first channel and pixel, got {}, {}, {} and {} x {}",
      classes, channels, options.width, options.imageSize[0], options.imageSize[1]);
  Builder builder(options);
  builder.graph.inputs = {{.name = "image", .shape = {channels, options.imageSize[0], options.imageSize[1]}}};
  auto y = builder.convolution("stem", "image", options.width, options.largeImages ? 7 : 3,
                               options.largeImages ? 2 : 1, Activation::ReLU);
  if (options.largeImages)
    y = builder.graph.add("stem.pool", MaxPool2d{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, {y});
  for (std::int64_t stage = 1, width = options.width; stage <= 4; ++stage, width *= 2)
    for (std::int64_t block = 1; block <= 2; ++block)
      y = builder.block(fmt::format("stage{}.block{}", stage, block), y, width,
                        stage > 1 && block == 1 ? 2 : 1);
  y = builder.graph.add("pool", GlobalPool2d{.kind = PoolKind::Average}, {y});
  builder.graph.addOutput(builder.graph.add("output", Output{.classes = classes, .init = options.init}, {y}));
  return std::move(builder.graph);
}

std::vector<std::pair<std::string, std::string>> resnet18InTorchvision() {
  std::vector<std::pair<std::string, std::string>> names{
      {"stem", "conv1"}, {"stem.norm", "bn1"}, {"output", "fc"}};
  for (int stage = 1; stage <= 4; ++stage)
    for (int block = 1; block <= 2; ++block) {
      const auto here = fmt::format("stage{}.block{}", stage, block);
      const auto there = fmt::format("layer{}.{}", stage, block - 1);
      for (int i = 1; i <= 2; ++i) {
        names.emplace_back(fmt::format("{}.conv{}", here, i), fmt::format("{}.conv{}", there, i));
        names.emplace_back(fmt::format("{}.conv{}.norm", here, i), fmt::format("{}.bn{}", there, i));
      }
      if (stage == 1 || block == 2) continue;
      names.emplace_back(here + ".shortcut", there + ".downsample.0");
      names.emplace_back(here + ".shortcut.norm", there + ".downsample.1");
    }
  return names;
}

}  // namespace muster
