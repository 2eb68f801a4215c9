#include "muster/parallel/run/suggested_run.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/image_folder.h"
#include "muster/datasets/table.h"
#include "muster/datasets/table_description.h"

namespace muster {
namespace {

constexpr std::int64_t kLeastHeldOut = 5;  // rows; fewer say nothing
constexpr std::int64_t kMostHeldOut = 2000;
constexpr std::int64_t kManyRows = 4000;  // from here on larger batches
// A training takes seconds: it ends after so many steps, or so many without an improvement.
constexpr std::int64_t kMostTableSteps = 80000, kPatientSteps = 12000;

Output outputOf(const InputDescription& described) {
  if (described.targets.empty()) return {.classes = std::ssize(described.classes), .init = Init::zero()};
  return {.units = 1, .loss = Loss::MeanSquaredError, .init = Init::zero()};
}

/// A small network for rows: a hidden layer, and beside it a direct path, by which it is a linear model; the
/// hidden layer learns what that leaves. The output starts at zero, so that a training which stops early has
/// no random weights in it. An l2 of 1 / rows is that of scikit-learn's LogisticRegression: a normal prior of
/// variance 1 for each weight.
/// @param rows  to train with.
ComputationGraphConfiguration networkFor(const InputDescription& described, std::int64_t rows) {
  ComputationGraphConfiguration graph{.seed = 123,
                                      .updater = Adam{.learningRate = 0.001},
                                      .l2 = 1.0 / static_cast<double>(rows),
                                      .inputs = {{.name = "row"}}};
  const auto scaled = graph.add("scaled", Normalise{}, {"row"});
  const auto hidden =
      graph.add("hidden", Dense{.units = 64, .activation = Activation::ReLU, .init = Init::he()}, {scaled});
  const auto some = graph.add("some", Dropout{.rate = 0.3}, {hidden});
  const auto both = graph.add("both", Merge{}, {scaled, some});
  graph.addOutput(graph.add("output", outputOf(described), {both}));
  return graph;
}

/// Rows held out of `rows`: three in twenty, or none if that is too few.
std::int64_t heldOut(std::int64_t rows, std::size_t classes) {
  const std::int64_t part = std::min(rows * 3 / 20, kMostHeldOut);
  return part < kLeastHeldOut || rows - part < static_cast<std::int64_t>(classes) ? 0 : part;
}

/// The model's file for this data, in the working directory: "iris.safetensors" for "data/iris.csv". So a run
/// on other data does not replace it.
std::string modelFor(const DataSource& data) {
  const std::filesystem::path path = std::filesystem::path(data.train).lexically_normal();
  auto name = (path.has_filename() ? path : path.parent_path()).filename();
  if (data.type == "csv") name = (name.extension() == ".gz" ? name.stem() : name).stem();
  const auto stem = name.string();
  const bool plain = !stem.empty() && stem.front() != '-' && stem.front() != '.';
  return plain ? stem + ".safetensors" : RunTraining().model;
}

/// What a table says of the data: how many rows have a label, and what the columns are. Logs what is left
/// out.
struct DescribedTable {
  std::int64_t rows = 0;
  InputDescription description;
};

/// @throws FileError as describeTable; InvalidArgument for a single class or too few rows.
DescribedTable described(const DataSource& data) {
  const auto table = readTable(data.train, data.tableFormat());
  const auto rows = labelledRows(table, data.label, data.regression);
  require(rows.size() > 1, "{}: has one example, and a training needs two", data.train);
  DescribedTable all{std::ssize(rows), describeTable(table, data.tableOptions(), rows)};
  const auto without = unlabelledWords(table, data.label, data.regression);
  require(data.regression || all.description.classes.size() > 1,
          "{}: has a single class, and a classification needs two; {}data.label=NAME names the column of the "
          "labels, and data.regression=true is for numbers to predict",
          data.train,
          without.empty() ? ""
                          : fmt::format("{} {} no label ({}); ", plural(table.rows() - all.rows, "row"),
                                        table.rows() - all.rows == 1 ? "has" : "have", without));
  for (const auto& [name, reason] : all.description.omitted)
    logInfo("column {} is left out: {}", name, reason);
  if (data.label.empty())
    logInfo("{}: the label is the last column, {}; data.label=NAME names another one", data.train,
            table.names().back());
  return all;
}

/// Early stopping and tests by the held-out part, if there is one. @param steps  of an epoch.
RunListeners tableListeners(const DataSource& data, std::int64_t steps) {
  if (data.validationExamples == 0) return {};
  return {
      .testEvery = 10,
      .earlyStopping = RunEarlyStopping{.monitored = {.monitor = Monitor::Loss},
                                        .patience = std::clamp<std::int64_t>(kPatientSteps / steps, 10, 90)}};
}

/// A run on a table: a small network, a held-out part of the rows, and early stopping by it. @throws as
/// described.
RunFile tableRun(DataSource data) {
  const auto [examples, description] = described(data);
  data.validationExamples = heldOut(examples, description.classes.size());
  const std::int64_t train = examples - data.validationExamples;
  data.batch = train < kManyRows ? std::clamp<std::int64_t>(train / 16, 1, 32) : 128;
  const std::int64_t steps = (train + data.batch - 1) / data.batch;
  auto listeners = tableListeners(data, steps);
  return {.data = std::move(data),
          .network = networkFor(description, train).toJson(),
          .training = {.workers = 1,
                       .strategyOptions = "every=1",
                       .epochs = std::clamp<std::int64_t>(kMostTableSteps / steps, 20, 800)},
          .listeners = std::move(listeners)};
}

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

/// A run on a folder of pictures: all brought to one size, a small convolutional network, one example in five
/// held out of the training, which ends when they are no longer recognised better.
/// @throws InvalidArgument for too few pictures; FileError.
RunFile pictureRun(DataSource data) {
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
    run.listeners.earlyStopping =
        RunEarlyStopping{.monitored = {.monitor = Monitor::Loss}, .patience = 10, .minImprovement = 0.002};
  }
  return run;
}

}  // namespace

RunFile suggestedRun(DataSource data) {
  require(data.type == "csv" || data.type == "images",
          "a run is suggested for a table or a folder of pictures, not for data of type {}", data.type);
  auto model = modelFor(data);
  RunFile run = data.type == "csv" ? tableRun(std::move(data)) : pictureRun(std::move(data));
  run.training.model = std::move(model);
  return run;
}

}  // namespace muster
