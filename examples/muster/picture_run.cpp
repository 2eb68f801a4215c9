#include "examples/muster/picture_run.h"

#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/image_folder.h"

namespace program {
namespace {

using namespace muster;

constexpr std::int64_t kLargestSide = 64;  // of pictures that are brought to one size, in pixels
constexpr std::int64_t kSmallestMap = 8;   // that is pooled
constexpr std::int64_t kMostSteps = 2000;  // of a training, so that it takes minutes

/// The size of small pictures; a square for larger ones, which may be upright or not.
Size2d sizeFor(const Shape& picture) {
  const std::int64_t height = picture[1], width = picture[2];
  if (std::max(height, width) <= kLargestSide) return {height, width};
  return kLargestSide;
}

/// Convolutions that halve the map and double the channels until it is small, then the mean of each channel:
/// the number of weights does not depend on the pictures' size.
std::vector<Layer> layersFor(Size2d size, std::int64_t classes) {
  std::vector<Layer> layers{Normalise{}};
  std::int64_t side = std::min(size[0], size[1]), channels = 16;
  do {
    layers.emplace_back(Conv2d{.outChannels = channels, .kernel = 3, .padding = 1, .bias = false});
    layers.emplace_back(BatchNorm{.activation = Activation::ReLU});
    if (side < kSmallestMap) break;
    layers.emplace_back(MaxPool2d{.kernel = 2});
    side /= 2;
    channels *= 2;
  } while (channels <= 64);
  layers.emplace_back(GlobalPool2d{});
  layers.emplace_back(Output{.classes = classes});
  return layers;
}

}  // namespace

RunFile pictureRun(RunData data) {
  const auto pictures = picturesIn(data.train);
  require(!pictures.empty(), "{}: has no pictures: no files .png, .jpg or .jpeg", data.train);
  const auto colour = data.grey ? PictureColour::Grey : PictureColour::Rgb;
  const auto size =
      sizeFor(readPicture(std::filesystem::path(data.train) / pictures.front(), {.colour = colour}).shape());
  const auto folder = readImageFolder(data.train, {.colour = colour, .size = size});
  const std::int64_t examples = folder.images->size(), classes = std::ssize(folder.classes);
  data.height = size[0];
  data.width = size[1];
  data.validationExamples = examples / 5 >= classes ? examples / 5 : 0;
  const std::int64_t train = examples - data.validationExamples;
  data.batch = std::clamp<std::int64_t>(train / 8, 2, 32);
  while (train % data.batch == 1) ++data.batch;  // BatchNorm cannot train on a last batch of one
  const std::int64_t steps = (train + data.batch - 1) / data.batch;
  MultiLayerConfiguration network{
      .seed = 123, .updater = Adam{.learningRate = 0.002}, .layers = layersFor(size, classes)};
  RunFile run{.data = std::move(data),
              .network = network.toJson(),
              .training = {.workers = 2,
                           .strategyOptions = "every=1",
                           .epochs = std::clamp<std::int64_t>(kMostSteps / steps, 10, 60)},
              .listeners = {}};
  if (run.data.validationExamples > 0) {
    run.listeners.testEvery = 1;
    run.listeners.earlyStopping = RunEarlyStopping{
        .monitored = {.monitor = Monitor::Loss, .mode = "min"}, .patience = 10, .minImprovement = 0.002};
  }
  return run;
}

}  // namespace program
