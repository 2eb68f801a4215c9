// Fine-tunes a ResNet-18 with the weights of a PyTorch state dict and a new head: several workers train only
// the head. `fine_tune --help` lists the options.

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "examples/support/command_line.h"
#include "examples/support/data_sets.h"
#include "examples/support/paths.h"
#include "examples/support/program.h"
#include "examples/support/training_json.h"
#include "muster/core/data/image_transform.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/io/weights.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/datasets/generated_digits.h"
#include "muster/parallel/parallel_wrapper.h"

using namespace muster;

namespace {

constexpr std::string_view kIntroduction =
    R"(Gives a ResNet-18 the weights of a file that PyTorch wrote, with torchvision's names, and a new head, trains the head
with several workers, and writes all as such a file again. To make one in Python:

  import safetensors.torch, torchvision
  safetensors.torch.save_file(torchvision.models.resnet18(weights="DEFAULT").state_dict(), "resnet18.safetensors")

  fine_tune --weights resnet18.safetensors --imagenet --data cifar10

Without --weights it makes a file by itself: a small network learns the digits 0 to 4. The new head then learns 5 to 9.
)";

constexpr std::int64_t kBatch = 32;

struct Options {
  std::filesystem::path weights = {}, model = "fine-tuned.safetensors", backbone = "backbone.safetensors",
                        json = {};
  example::DataChoice data = {.names = example::kAllImages};
  int workers = 2;
  std::int64_t epochs = 3, seed = 1, trainedBatch = kBatch;
  double learningRate = 0.02, backboneRate = 0;
  bool imagenet = false;
};

/// The normalisation of colours with which torchvision's weights were trained: each channel minus its mean,
/// divided by its standard deviation.
struct ImagenetColours {
  static constexpr std::string_view kType = "imagenet-colours";
  static constexpr float kMean[] = {0.485f, 0.456f, 0.406f}, kDeviation[] = {0.229f, 0.224f, 0.225f};
  void apply(const ImageView& view, const std::byte* from, std::byte* to, const RandomStream&,
             std::uint64_t) const {
    require(view.channels == 3 && view.elementBytes == sizeof(float),
            "--imagenet is for float32 in three channels");
    const auto* x = reinterpret_cast<const float*>(from);
    auto* y = reinterpret_cast<float*>(to);
    for (int c = 0; c < 3; ++c)
      for (std::int64_t i = 0; i < view.height * view.width; ++i) *y++ = (*x++ - kMean[c]) / kDeviation[c];
  }
  void validate() const {}
};

/// The images of some classes, renumbered from 0, with as many channels as the network reads.
std::shared_ptr<const ImageSet> part(const ImageSet& set, int firstClass, int classes,
                                     std::int64_t channels) {
  const Shape& shape = set.imageShape();
  require(shape[0] == channels || shape[0] == 1, "the weights are for {} channels, and the images have {}",
          channels, shape[0]);
  std::vector<std::uint8_t> pixels, labels;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const int label = set.label(i) - firstClass;
    if (label < 0 || label >= classes) continue;
    labels.push_back(static_cast<std::uint8_t>(label));
    for (std::int64_t c = 0; c < channels; c += shape[0])
      pixels.insert(pixels.end(), set.image(i).begin(), set.image(i).end());
  }
  return std::make_shared<ImageSet>(std::move(pixels), Shape{channels, shape[1], shape[2]}, std::move(labels),
                                    classes, set.origin());
}

/// The shape of the weights' first convolution, by its name in torchvision.
Shape firstConvolution(const std::filesystem::path& path) {
  const Safetensors file = readSafetensors(path);
  const Tensor* const stem = file.find("conv1.weight");
  if (stem == nullptr || stem->shape().rank() != 4)
    throw FileError(path, "has no conv1.weight of four dimensions: it is not a ResNet of torchvision");
  return stem->shape();
}

ComputationGraphConfiguration configurationOf(const ImageSet& images, std::int64_t width, const Options& o) {
  const Shape& image = images.imageShape();
  auto configuration = resnet18(images.classes(), image[0],
                                {.imageSize = {image[1], image[2]}, .width = width, .largeImages = true});
  configuration.seed = static_cast<std::uint64_t>(o.seed);
  configuration.updater = Nesterovs{.learningRate = o.learningRate, .momentum = 0.9};
  return configuration;
}

/// Writes the weights to start from: a small network trained on the digits 0 to 4.
void writeBackbone(const ImageSet& digits, const Options& o) {
  const auto few = part(digits, 0, 5, 1);
  ComputationGraph network(configurationOf(*few, 8, o));
  network.init();
  ImageSetIterator train(few, kBatch, static_cast<std::uint64_t>(o.seed));
  ParallelWrapper::Builder(network).workers(o.workers).averagingFrequency(4).build().fit(train, o.epochs);
  saveWeights(network, o.backbone, {.layers = resnet18InTorchvision(), .batch = kBatch});
  fmt::print("no --weights: a small network has learnt the digits 0 to 4, loss {:.4f}: {}\n", network.score(),
             o.backbone.string());
}

/// Writes the file of `--json`.
void writeJson(const Options& o, const example::DataSets& data, const std::filesystem::path& weights,
               std::string_view plan, const std::vector<example::EpochResult>& epochs) {
  const auto putOptions = [&](JsonWriter& json) {
    json.put("weights", std::string_view(weights.string()));
    json.put("workers", std::int64_t{o.workers});
    json.put("batch", kBatch);
    json.put("learningRate", o.learningRate);
    json.put("backboneRate", o.backboneRate);
    json.put("seed", o.seed);
    json.put("imagenet", o.imagenet);
  };
  example::TrainingJson{
      .data = data.title, .dataFrom = data.origin, .options = putOptions, .plan = plan, .epochs = epochs}
      .write(o.json);
  fmt::print("json: {}\n", o.json.string());
}

int run(const Options& o) {
  auto data = example::loadData(o.data, kBatch, o.seed);
  if (!data.notice.empty()) fmt::print("{}\n", data.notice);
  const bool own = o.weights.empty();
  if (own) writeBackbone(*data.train->set(), o);
  const auto& weights = own ? o.backbone : o.weights;
  const Shape stem = firstConvolution(weights);

  const int firstClass = own ? 5 : 0, classes = data.train->set()->classes() - firstClass;
  const auto images = part(*data.train->set(), firstClass, classes, stem[1]),
             others = part(*data.test->set(), firstClass, classes, stem[1]);
  auto configuration = configurationOf(*images, stem[0], o);
  for (auto& vertex : configuration.vertices)  // all but the head: frozen, or a lower learning rate
    if (vertex.name != "output")
      vertex.layer = o.backboneRate > 0 ? vertex.layer.learningRate(o.backboneRate) : vertex.layer.frozen();
  ComputationGraph network(configuration);
  network.init();
  loadWeights(network, weights,
              {.layers = resnet18InTorchvision(), .keep = {"output"}, .batch = o.trainedBatch});
  fmt::print("weights: {}, ResNet-18 of width {} for {} channel{}; a new head for {} classes\n",
             weights.string(), stem[0], stem[1], stem[1] == 1 ? "" : "s", classes);

  ImageSetIterator trainPlain(images, kBatch, static_cast<std::uint64_t>(o.seed)), testPlain(others, kBatch);
  const std::vector<ImageTransform> colours{ImagenetColours{}};
  TransformingIterator trainColours(trainPlain, colours, 0), testColours(testPlain, colours, 0);
  DataSetIterator &train = o.imagenet ? static_cast<DataSetIterator&>(trainColours) : trainPlain,
                  &test = o.imagenet ? static_cast<DataSetIterator&>(testColours) : testPlain;

  auto wrapper = ParallelWrapper::Builder(network).workers(o.workers).averagingFrequency(4).build();
  fmt::print("plan: {}\n", wrapper.plan());
  std::vector<example::EpochResult> epochs;
  for (std::int64_t epoch = 1; epoch <= o.epochs; ++epoch) {
    wrapper.fit(train);
    epochs.push_back(
        {.epoch = epoch, .loss = network.score(), .testAccuracy = wrapper.evaluate(test).accuracy()});
    fmt::print("epoch {}/{}: loss {:.4f}, accuracy on other images {:.4f}\n", epoch, o.epochs,
               epochs.back().loss, *epochs.back().testAccuracy);
  }
  saveWeights(network, o.model, {.layers = resnet18InTorchvision(), .batch = o.trainedBatch});
  fmt::print("saved: {}, which PyTorch reads: model.load_state_dict(safetensors.torch.load_file(...))\n",
             o.model.string());
  if (!o.json.empty()) writeJson(o, data, weights, wrapper.plan(), epochs);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::runProgram("fine_tune", [&] {
    Options o;
    o.data.name = "generated";
    o.data.examples = 3000;
    example::CommandLine line(kIntroduction);
    line.group("Options");
    line.add("weights", o.weights, "FILE", "ResNet-18's state dict in the safetensors format");
    line.add("trained-batch", o.trainedBatch, "N",
             "examples a batch of the training of the weights: running variances are converted by it; 0: not",
             example::atLeast(0));
    line.flag("imagenet", o.imagenet, "colours as torchvision's weights expect them");
    line.add("backbone-rate", o.backboneRate, "X",
             "what the learning rate is multiplied with outside the head; 0: frozen", example::notNegative);
    line.add("learning-rate", o.learningRate, "X", "of the head", example::positive);
    line.add("workers", o.workers, "N", "threads, each with a replica", example::between(1, 1024));
    line.add("epochs", o.epochs, "N", "passes over the data", example::between(1, 1'000'000));
    line.add("seed", o.seed, "N", "of the first weights and of the order of the images", example::atLeast(0));
    line.add("model", o.model, "FILE", "where all weights go");
    line.add("json", o.json, "FILE", "write options, plan and the results of each epoch");
    line.add("backbone", o.backbone, "FILE", "where the file to begin with goes, without --weights");
    o.data.describe(line);
    if (!line.read(argc, argv)) return 0;
    o.data.check();
    require(!o.weights.empty() || o.data.name == "generated",
            "--data {} needs --weights: without them the program learns generated digits", o.data.name);
    example::Paths paths;
    paths.reads("--weights", o.weights, "--model");
    paths.writes("--model", o.model);
    paths.writes("--json", o.json);
    if (o.weights.empty()) paths.writes("--backbone", o.backbone);
    paths.check();
    return run(o);
  });
}
