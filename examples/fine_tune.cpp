// Fine-tunes a ResNet-18 with the weights of a PyTorch state dict and a new head: several workers train only
// the head. `fine_tune --help` lists the options.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "examples/fine_tune/options.h"
#include "examples/support/data_sets.h"
#include "examples/support/keep_network.h"
#include "examples/support/paths.h"
#include "examples/support/program.h"
#include "examples/support/training_interrupt.h"
#include "examples/support/training_json.h"
#include "muster/core/base/interrupt.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/image_transform.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/io/weights.h"
#include "muster/core/listeners/collect_scores_listener.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/parallel/parallel_wrapper.h"

using namespace muster;

namespace {

using example::EpochResult;
using Options = example::FineTuneOptions;

constexpr std::int64_t kBatch = Options::kBatch;

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
  require(shape[0] == channels || shape[0] == 1, "the weights are for {}, and the images have {}",
          plural(channels, "channel"), shape[0]);
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
  const Safetensors file = readSafetensors(path, OtherTypes::Skip);
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

/// Averages every four iterations. @param scores  receives the scores.
ParallelWrapper makeWrapper(ComputationGraph& network, const Options& o,
                            const std::shared_ptr<CollectScoresListener>& scores) {
  return ParallelWrapper::Builder(network)
      .workers(o.workers)
      .averagingFrequency(4)
      .listeners({scores})
      .build();
}

/// Writes the weights unless the training diverged.
void save(ComputationGraph& network, const CollectScoresListener& scores, DataSetIterator& data,
          const std::filesystem::path& file, std::int64_t batch) {
  example::requireFiniteOutputs(network, data);
  example::requireNoDivergence(scores.merges(), network.outputShapes().back().second.elements());
  example::writeHereOrElsewhere(file, [&](const std::filesystem::path& path) {
    saveWeights(network, path, {.layers = resnet18InTorchvision(), .batch = batch});
  });
}

/// The learning rate as an option, for the message of a diverged training.
std::string rateOf(const Options& o) {
  return fmt::format("--learning-rate {}", o.learningRate);
}

/// Writes the weights to start from: a small network trained on the digits 0 to 4.
/// @return false if it was interrupted; what was trained is then saved.
bool writeBackbone(const ImageSet& digits, const Options& o) {
  const auto few = part(digits, 0, 5, 1);
  ComputationGraph network(configurationOf(*few, 8, o));
  network.init();
  ImageSetIterator train(few, kBatch, static_cast<std::uint64_t>(o.seed));
  const auto scores = std::make_shared<CollectScoresListener>();
  auto wrapper = makeWrapper(network, o, scores);
  example::requireDiskRoom(o.backbone, example::savedBytes(network));
  fmt::print("no --weights: a small network learns the digits 0 to 4 first\n");
  example::TrainingInterrupt interrupt;
  const auto fit = [&] {
    for (std::int64_t epoch = 1; epoch <= o.epochs && !interrupt.requested(); ++epoch) {
      wrapper.fit(train, 1, interrupt.token());
      if (network.epoch() == epoch)
        fmt::print("small network, epoch {}/{}: loss {:.4f}\n", epoch, o.epochs, network.score());
    }
  };
  const auto saveTrained = [&](bool) {
    if (network.iteration() == 0) return fmt::print("ended before the first step: nothing was saved\n");
    save(network, *scores, train, o.backbone, kBatch);
    fmt::print("saved: {}\n", o.backbone.string());
  };
  example::trainAndSave(fit, saveTrained, rateOf(o));
  interrupt.endWith(network.iteration() > 0
                        ? "Interrupted before the head was trained; the small network is saved."
                        : "Interrupted before the head was trained; nothing was saved.");
  if (interrupt.requested())
    fmt::print("interrupted, with {} of {} of the small network finished; the head was not trained\n",
               network.epoch(), plural(o.epochs, "epoch"));
  return !interrupt.requested();
}

/// Trains epoch by epoch. @param epochs  receives the results of each finished epoch.
void train(ParallelWrapper& wrapper, ComputationGraph& network, DataSetIterator& images,
           DataSetIterator& others, const Options& o, const std::stop_token& stop,
           std::vector<EpochResult>& epochs) {
  for (std::int64_t epoch = 1; epoch <= o.epochs && !stop.stop_requested(); ++epoch) {
    wrapper.fit(images, 1, stop);
    if (network.epoch() < epoch) break;  // interrupted within the epoch
    epochs.push_back(
        {.epoch = epoch, .loss = network.score(), .testAccuracy = wrapper.evaluate(others).accuracy()});
    fmt::print("epoch {}/{}: loss {:.4f}, accuracy on other images {:.4f}\n", epoch, o.epochs,
               epochs.back().loss, *epochs.back().testAccuracy);
  }
}

/// Writes the file of `--json`.
void writeJson(const Options& o, const example::DataSets& data, const std::filesystem::path& weights,
               std::string_view plan, const std::vector<EpochResult>& epochs, bool interrupted) {
  const auto putOptions = [&](JsonWriter& json) {
    json.put("weights", std::string_view(weights.string()));
    json.put("workers", std::int64_t{o.workers});
    json.put("batch", kBatch);
    json.put("learningRate", o.learningRate);
    json.put("backboneRate", o.backboneRate);
    json.put("seed", o.seed);
    json.put("imagenet", o.imagenet);
  };
  example::TrainingJson{.data = data.title,
                        .dataFrom = data.origin,
                        .options = putOptions,
                        .plan = plan,
                        .interrupted = interrupted,
                        .epochs = epochs}
      .write(o.json);
  fmt::print("json: {}\n", o.json.string());
}

/// Checks all that it can before the data are read, which may take long.
void checkBeforehand(const Options& o) {
  example::Paths paths;
  o.data.addTo(paths);
  paths.reads("--weights", o.weights, /*replacedBy=*/"--model");
  paths.writes("--model", o.model);
  paths.writes("--json", o.json);
  if (o.weights.empty()) paths.writes("--backbone", o.backbone);
  paths.check();
  if (!o.weights.empty()) firstConvolution(o.weights);
}

int run(const Options& o) {
  checkBeforehand(o);
  example::endOnInterrupt(example::kInterruptedBefore);
  auto data = example::loadData(o.data, kBatch, o.seed);
  if (!data.notice.empty()) fmt::print("{}\n", data.notice);
  const bool own = o.weights.empty();
  if (own && !writeBackbone(*data.train->set(), o)) return kInterruptedExit;
  const auto& weights = own ? o.backbone : o.weights;
  const Shape stem = firstConvolution(weights);

  const int firstClass = own ? 5 : 0, classes = data.train->set()->classes() - firstClass;
  const auto trainSet = part(*data.train->set(), firstClass, classes, stem[1]),
             testSet = part(*data.test->set(), firstClass, classes, stem[1]);
  auto configuration = configurationOf(*trainSet, stem[0], o);
  for (auto& vertex : configuration.vertices)  // all but the head: frozen, or a lower learning rate
    if (vertex.name != "output")
      vertex.layer = o.backboneRate > 0 ? vertex.layer.learningRate(o.backboneRate) : vertex.layer.frozen();
  ComputationGraph network(configuration);
  network.init();
  loadWeights(network, weights,
              {.layers = resnet18InTorchvision(), .keep = {"output"}, .batch = o.trainedBatch});
  fmt::print("weights: {}, ResNet-18 of width {} for {}; a new head for {} classes\n", weights.string(),
             stem[0], plural(stem[1], "channel"), classes);

  ImageSetIterator trainPlain(trainSet, kBatch, static_cast<std::uint64_t>(o.seed)),
      testPlain(testSet, kBatch);
  const std::vector<ImageTransform> colours{ImagenetColours{}};
  TransformingIterator trainColours(trainPlain, colours, 0), testColours(testPlain, colours, 0);
  DataSetIterator &images = o.imagenet ? static_cast<DataSetIterator&>(trainColours) : trainPlain,
                  &others = o.imagenet ? static_cast<DataSetIterator&>(testColours) : testPlain;

  const auto scores = std::make_shared<CollectScoresListener>();
  auto wrapper = makeWrapper(network, o, scores);
  example::requireDiskRoom(o.model, example::savedBytes(network));
  fmt::print("plan: {}\n", wrapper.plan());
  example::TrainingInterrupt interrupt;
  std::vector<EpochResult> epochs;
  const auto saveTrained = [&](bool) {
    if (network.iteration() == 0)
      return fmt::print("ended before the first step: {} was not written\n", o.model.string());
    save(network, *scores, others, o.model, o.trainedBatch);
    fmt::print("saved: {}, which PyTorch reads: model.load_state_dict(safetensors.torch.load_file(...))\n",
               o.model.string());
  };
  example::trainAndSave([&] { train(wrapper, network, images, others, o, interrupt.token(), epochs); },
                        saveTrained, rateOf(o));
  interrupt.end(network.iteration() > 0);
  if (interrupt.requested())
    fmt::print("interrupted, with {} of {} finished\n", epochs.size(), plural(o.epochs, "epoch"));
  if (!o.json.empty()) writeJson(o, data, weights, wrapper.plan(), epochs, interrupt.requested());
  return interrupt.requested() ? kInterruptedExit : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::runProgram("fine_tune", [&] {
    const auto options = example::readFineTuneOptions(argc, argv);
    return options ? run(*options) : 0;
  });
}
