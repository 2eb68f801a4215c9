// Fine-tunes a ResNet-18 with the weights of a PyTorch state dict: several workers train a new head, all else
// is frozen or learns more slowly, and such a file is written again. `fine_tune --help` says more.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/data/image_transform.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/io/weights.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/datasets/cifar10.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/parallel_wrapper.h"
#include "options.h"

using namespace muster;

namespace {

constexpr const char* kHelp =
    R"(Gives a ResNet-18 the weights of a file that PyTorch wrote, with torchvision's names, and a new head, which
it trains. To make such a file in Python:
  import safetensors.torch, torchvision
  safetensors.torch.save_file(torchvision.models.resnet18(weights="DEFAULT").state_dict(), "resnet18.safetensors")
  fine_tune --weights resnet18.safetensors --data cifar10

Without --weights a small network learns generated digits from 0 to 4, and a new head on it learns 5 to 9.)";
/// Examples per batch, as on each GPU that trained torchvision's weights: running variances depend on it.
constexpr std::int64_t kBatch = 32;

struct Options {
  std::string weights, data = "generated", model = "fine-tuned.safetensors";
  int workers = 2;
  std::int64_t epochs = 3, examples = 3000;
  double backboneRate = 0;
};

/// Colours as torchvision's weights expect them: each channel minus its mean, by its standard deviation.
struct ImagenetColours {
  static constexpr std::string_view kType = "imagenet-colours";
  static constexpr float kMean[] = {0.485f, 0.456f, 0.406f}, kDeviation[] = {0.229f, 0.224f, 0.225f};
  void apply(const ImageView& view, const std::byte* from, std::byte* to, const RandomStream&,
             std::uint64_t) const {
    const auto* x = reinterpret_cast<const float*>(from);
    auto* y = reinterpret_cast<float*>(to);
    for (int c = 0; c < 3; ++c)
      for (std::int64_t i = 0; i < view.height * view.width; ++i) *y++ = (*x++ - kMean[c]) / kDeviation[c];
  }
  void validate() const {}
};

std::shared_ptr<const ImageSet> images(const Options& o, bool train) {
  if (o.data == "cifar10")
    return Cifar10DataSetIterator(kBatch, train, 1, DataOptions{.limit = o.examples}).set();
  require(o.data == "generated", "--data must be generated or cifar10, got {}", o.data);
  return GeneratedDigitsIterator(kBatch, o.examples, /*seed=*/20, train).set();
}

/// The images of some classes, renumbered from 0, with as many channels as the network reads.
std::shared_ptr<const ImageSet> part(const ImageSet& set, int firstClass, int classes,
                                     std::int64_t channels) {
  const Shape& shape = set.imageShape();
  require(shape[0] == channels || shape[0] == 1, "the weights do not fit images {}", shape.toString());
  std::vector<std::uint8_t> pixels, labels;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const int label = set.label(i) - firstClass;
    if (label < 0 || label >= classes) continue;
    labels.push_back(static_cast<std::uint8_t>(label));
    for (std::int64_t c = 0; c < channels; c += shape[0])  // grey is three equal channels
      pixels.insert(pixels.end(), set.image(i).begin(), set.image(i).end());
  }
  return std::make_shared<ImageSet>(std::move(pixels), Shape{channels, shape[1], shape[2]}, std::move(labels),
                                    classes, set.origin());
}

ComputationGraphConfiguration network(const ImageSet& set, std::int64_t width) {
  const Shape& image = set.imageShape();
  auto configuration = resnet18(set.classes(), image[0],
                                {.imageSize = {image[1], image[2]}, .width = width, .largeImages = true});
  configuration.updater = Nesterovs{.learningRate = 0.02, .momentum = 0.9};
  return configuration;
}

void train(ComputationGraph& model, DataSetIterator& data, const Options& o) {
  ParallelWrapper::Builder(model).workers(o.workers).averagingFrequency(4).build().fit(data, o.epochs);
}

/// Writes weights to start from.
void writeBackbone(const ImageSet& digits, const std::string& file, const Options& o) {
  const auto few = part(digits, 0, 5, 1);
  ComputationGraph model(network(*few, /*width=*/8));
  model.init();
  ImageSetIterator data(few, kBatch, /*shuffleSeed=*/1);
  train(model, data, o);
  saveWeights(model, file, {.layers = resnet18InTorchvision(), .batch = kBatch});
  fmt::print("a small network has learnt the digits 0 to 4: loss {:.4f}, saved: {}\n", model.score(), file);
}

void run(const Options& o) {
  require(!o.weights.empty() || o.data == "generated", "--data {} needs --weights", o.data);
  const std::string weights = o.weights.empty() ? "backbone.safetensors" : o.weights;
  if (o.weights.empty()) writeBackbone(*images(o, true), weights, o);
  const Safetensors file = readSafetensors(weights, OtherTypes::Skip);
  const Tensor* const stem = file.find("conv1.weight");  // [width, channels, 7, 7]
  if (stem == nullptr || stem->shape().rank() != 4)
    throw FileError(weights, "has no conv1.weight of four dimensions: it is not a ResNet of torchvision");
  const std::int64_t width = stem->shape()[0], channels = stem->shape()[1];
  const int firstClass = o.weights.empty() ? 5 : 0, classes = 10 - firstClass;
  const auto set = part(*images(o, true), firstClass, classes, channels);
  auto configuration = network(*set, width);
  for (auto& vertex : configuration.vertices)
    if (vertex.name != "output")
      vertex.layer = o.backboneRate > 0 ? vertex.layer.learningRate(o.backboneRate) : vertex.layer.frozen();
  ComputationGraph model(configuration);
  model.init();
  loadWeights(model, weights, {.layers = resnet18InTorchvision(), .keep = {"output"}, .batch = kBatch});
  fmt::print("weights: {}, ResNet-18 of width {}; a new head for {} classes\n", weights, width, classes);

  ImageSetIterator plain(set, kBatch, /*shuffleSeed=*/1);
  ImageSetIterator plainTest(part(*images(o, false), firstClass, classes, channels), kBatch);
  TransformingIterator colours(plain, {ImagenetColours{}}, 0), testColours(plainTest, {ImagenetColours{}}, 0);
  const bool photographs = o.data == "cifar10";
  train(model, photographs ? static_cast<DataSetIterator&>(colours) : plain, o);
  DataSetIterator& test = photographs ? static_cast<DataSetIterator&>(testColours) : plainTest;
  fmt::print("accuracy on other images {:.4f}\n", model.evaluate(test).accuracy());
  saveWeights(model, o.model, {.layers = resnet18InTorchvision(), .batch = kBatch});
  fmt::print("saved: {}, which PyTorch reads\n", o.model);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return example::runExample(
      argc, argv, kHelp,
      {{"weights", &o.weights, "ResNet-18's state dict in the safetensors format"},
       {"data", &o.data, "generated, or cifar10, with the colours that torchvision's weights expect"},
       {"examples", &o.examples, "at most so many, to train and to test with"},
       {"backbone-rate", &o.backboneRate, "factor of the learning rate outside the head; 0: frozen"},
       {"workers", &o.workers, "threads, each with a replica"},
       {"epochs", &o.epochs, "passes over the images"},
       {"model", &o.model, "all weights, in the same format"}},
      [&] { run(o); });
}
